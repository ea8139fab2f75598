package diskcache

// Stat describes a cache.
type Stat struct {
	Dir    string `json:"dir"`
	Blocks int    `json:"blocks"`
	// Bytes is what the cache may take of the disk, and Used what blocks hold.
	Bytes int64 `json:"bytes"`
	Used  int64 `json:"used_bytes"`
	Files int64 `json:"file_bytes"` // of the disk, now
	// Counts of all processes since the cache was made. A hit or miss is a block.
	Hits   uint64 `json:"hits"`
	Misses uint64 `json:"misses"`
	// HitBytes were read from blocks, FetchedBytes from the store.
	HitBytes     uint64 `json:"hit_bytes"`
	FetchedBytes uint64 `json:"fetched_bytes"`
	Evicted      uint64 `json:"evicted"`
	Damaged      uint64 `json:"damaged"`
	Waited       uint64 `json:"waited"` // misses that another reader's fetch served
	Failed       uint64 `json:"failed"` // times that the directory did not work, and was let alone for a while
}
