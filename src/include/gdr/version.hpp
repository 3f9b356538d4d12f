// The version of gdrjit. The build reads it from here.
#pragma once

#define GDRJIT_VERSION "0.1.0"
