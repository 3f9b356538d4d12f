// The traces of MemoryCheck as text.

#include "verify/memory.hpp"

namespace gdr::verifying {

OpPlace MemoryCheck::place(const Event& event) const {
  return {index_.op(event.access->op).id, index_.role(event.role).name, event.warp, event.iteration};
}

std::string MemoryCheck::describe(const Event& event) const {
  const OpPlace p = place(event);
  return fmt::format("op `{}` (role {}, warp {}, iteration {})", p.op, p.role, p.warp, p.iteration);
}

std::string MemoryCheck::tile_name(const SmemAccess& access) const {
  const Tile& tile = at(index_.kernel->tiles, access.tile);
  return tile.parts > 1 ? fmt::format("{} part {}", tile.name, access.part) : tile.name;
}

void MemoryCheck::report(Findings& findings) {
  for (const Miss& miss : misses_) {
    // A read that races with the very write it means may find anything; the race says it all.
    const Event& reader = event(miss.reader);
    if (!races_of_reads_.contains({reader.access->op, reader.block_warp, reader.iteration, miss.expected, miss.cell}))
      add_trace(Fault::value, miss.found, false, miss.reader, true, miss.cell, miss.expected);
  }
  misses_.clear();
  for (const Trace& trace : traces_) {
    switch (trace.fault) {
      case Fault::race:
        report_race(trace, findings);
        break;
      case Fault::value:
        report_value(trace, findings);
        break;
      case Fault::fence:
        report_fence(trace, findings);
        break;
    }
  }
}

void MemoryCheck::report_race(const Trace& trace, Findings& findings) const {
  const Event* earlier = &event(trace.first);
  const Event* later = &event(trace.second);
  const bool earlier_reads = trace.first_reads, later_reads = trace.second_reads;
  const std::string bytes = fmt::format("bytes {}..{}", trace.bytes.begin, trace.bytes.end);
  const std::string there = tile_name(*earlier->access);
  const std::string here = tile_name(*later->access);
  std::string still = earlier_reads ? "may still read" : "may still write";
  if (earlier->access->lands_later) still = "may still be copying";
  const char* does = later_reads ? "reads" : later->access->lands_later ? "copies into" : "writes";
  Finding& finding =
      findings.add("GDR-V10", "{} {} {} {} while {} {} {}: no barrier orders them", describe(*later), does, here, bytes,
                   describe(*earlier), still,
                   here == there ? (earlier->access->lands_later ? "to them" : "them") : there + " there");
  finding.a = place(*later);
  finding.b = place(*earlier);
  finding.tile = at(index_.kernel->tiles, later->access->tile).name;
  finding.byte_begin = trace.bytes.begin;
  finding.byte_end = trace.bytes.end;
  const std::string before =
      earlier->iteration == later->iteration
          ? fmt::format("before `{}`", finding.a.op)
          : fmt::format("before `{}` of {} iteration(s) later", finding.a.op, later->iteration - earlier->iteration);
  if (earlier->access->lands_later) {
    finding.remedy =
        fmt::format("an arrive of role {} with after_copies behind `{}` and a wait for it in role {} {} would",
                    finding.b.role, finding.b.op, finding.a.role, before);
  } else if (earlier->role == later->role) {
    finding.remedy = fmt::format("a sync of role {} after `{}` and {} would", finding.b.role, finding.b.op, before);
  } else {
    finding.remedy = fmt::format("a wait in role {} for an arrival of role {} after `{}`, {}, would", finding.a.role,
                                 finding.b.role, finding.b.op, before);
  }
}

void MemoryCheck::report_value(const Trace& trace, Findings& findings) const {
  const Event& reader = event(trace.second);
  std::string found = "bytes that nothing has written";
  if (trace.first >= 0) {
    const Event& writer = event(trace.first);
    found = fmt::format("what {} wrote to {}", describe(writer), tile_name(*writer.access));
  }
  const std::string meant =
      trace.expected == kNothing
          ? "no op before it writes them in this iteration"
          : fmt::format("it means what op `{}` (role {}) writes in iteration {}", index_.op(trace.expected).id,
                        index_.role_of(trace.expected).name, reader.iteration);
  Finding& finding = findings.add("GDR-V13", "{} reads {} bytes {}..{} and finds {}; {}", describe(reader),
                                  tile_name(*reader.access), trace.bytes.begin, trace.bytes.end, found, meant);
  finding.a = place(reader);
  if (trace.first >= 0) finding.b = place(event(trace.first));
  finding.tile = at(index_.kernel->tiles, reader.access->tile).name;
  finding.byte_begin = trace.bytes.begin;
  finding.byte_end = trace.bytes.end;
}

void MemoryCheck::report_fence(const Trace& trace, Findings& findings) const {
  const Event& user = event(trace.second);
  const Event& writer = event(trace.first);
  Finding& finding = findings.add("GDR-V15",
                                  "{} {} {} bytes {}..{} through the asynchronous proxy; {} wrote them through "
                                  "the generic one and no fence of its warp stands between",
                                  describe(user), trace.second_reads ? "reads" : "writes", tile_name(*user.access),
                                  trace.bytes.begin, trace.bytes.end, describe(writer));
  finding.a = place(user);
  finding.b = place(writer);
  finding.tile = at(index_.kernel->tiles, user.access->tile).name;
  finding.byte_begin = trace.bytes.begin;
  finding.byte_end = trace.bytes.end;
  finding.remedy =
      fmt::format("a fence in role {} after `{}` and before its arrival would mend it", finding.b.role, finding.b.op);
}

}  // namespace gdr::verifying
