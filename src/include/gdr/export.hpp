// GDR_API marks what the shared library exports; everything else is compiled with hidden visibility.
#pragma once

#define GDR_API __attribute__((visibility("default")))
