// What every kernel that makes all gradients of a chunk says alike: the sums of X and what dg and dbeta are made of.
// Tiles: P = Pg, F = dO E^T, Y = dV E^T, M = strictLower(KK o G), each chunk x chunk; the vectors carry the sums'
// names.
#pragma once

namespace gdr::formulas {

struct Formula {
  const char* expr;
  const char* step;
};

// X = strictLower(dPg o Pg - M o Y) diag(beta) is kept without its beta, and with the diagonal of dPg o Pg, which dbeta
// wants where beta is 0.
inline constexpr Formula kPairsOfP = {"P[i,j] = F[i,j]*P[i,j]", "9: X = dPg o Pg, without beta"};
inline constexpr Formula kLessPairsOfK = {"P[i,j] = P[i,j] - M[i,j]*Y[i,j]", "10: X -= M o Y, without beta"};
inline constexpr Formula kRowsOfX = {"xrow[i] = select(i>j, be[j]*P[i,j], 0)", "10: rows of X"};
inline constexpr Formula kColumnsOfX = {"xcol[j] = select(i>j, P[i,j], 0)", "10: columns of X, without beta"};
inline constexpr Formula kColumnsWithDiagonal = {"tcol[j] = P[i,j]",
                                                 "dbeta where beta is 0: E.(Pg^T dO) - columns of M o Y"};

// The 'suffix' sums of section 4 with c and the b terms kept apart, so that nothing is added that has to cancel.
inline constexpr Formula kGateGradient = {
    "dgv[i] = exp(gam[C-1])*cs[0] + suffix(qdq[i]+dvu[i]+xrow[i]-be[i]*xcol[i]) + before(be[i]*ed[i])",
    "dg = c + suffix(a + row(X) - col(X)) + before(b)"};
inline constexpr Formula kBetaGradient = {"dbv[i] = select(be[i] > 8.673617379884035e-19, edv[i]/be[i], ed[i]+tcol[i])",
                                          "dbeta = dV.E / beta where beta > 2^-60, else D.E - columns of M o Y"};

}  // namespace gdr::formulas
