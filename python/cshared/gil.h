// dsi_gil_with takes the interpreter's PyGILState_GetThisThreadState, PyThreadState_GetUnchecked, PyEval_SaveThread,
// PyEval_RestoreThread and Py_IsFinalizing.
void dsi_gil_with(void *own, void *current, void *save, void *restore, void *finalizing);

// dsi_gil_release gives the GIL back if this thread holds it, so that Python code runs while the engine works. It
// returns what dsi_gil_take takes it with again; NULL: this thread does not hold it.
void *dsi_gil_release(void);
void dsi_gil_take(void *state);
