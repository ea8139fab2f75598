#include <stdint.h>

// What dsi_next gives: block is 0 before.
typedef struct { void *block; int64_t size, id, index, epoch; } dsi_batch;

// dsi_destructor_with returns the destructor of PyCapsules that hold a dsi_batch, else an ArrowArrayStream, given
// PyCapsule_GetPointer and the function that frees the structure. Those of a dsi_batch have no name.
uintptr_t dsi_destructor_with(void *get, void *free_raw, int32_t of_batch);
