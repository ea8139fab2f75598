#include <stdint.h>

// dsi_destructor_with returns the destructor of PyCapsules that hold an ArrowArrayStream, given PyCapsule_GetPointer
// and the function that frees the structure.
uintptr_t dsi_destructor_with(void *get, void *free_raw);
