#ifndef DSI_GUARD_H
#define DSI_GUARD_H

#include <stdint.h>

// The Arrow C data and stream interfaces, as their specification lays them out. dsi_ keeps the names apart from other
// copies.
struct dsi_array {
	int64_t length, null_count, offset, n_buffers, n_children;
	const void **buffers;
	struct dsi_array **children;
	struct dsi_array *dictionary;
	void (*release)(struct dsi_array *);
	void *private_data;
};

struct dsi_array_stream {
	int (*get_schema)(struct dsi_array_stream *, void *schema);
	int (*get_next)(struct dsi_array_stream *, struct dsi_array *out);
	const char *(*get_last_error)(struct dsi_array_stream *);
	void (*release)(struct dsi_array_stream *);
	void *private_data;
};

// dsi_guard makes out a stream of what is exported to the stream that it returns, or NULL without memory. In a process
// that is forked later the callbacks of the stream and of its arrays do not call the engine, which would wait for ever:
// batches are not given, and releasing does nothing.
struct dsi_array_stream *dsi_guard(struct dsi_array_stream *out);

#endif
