package terminal

import "maps"

// Endpoint are the flags of commands that open a store: how it is reached.
type Endpoint struct {
	EndpointURL string `name:"endpoint-url" placeholder:"URL" help:"Service of stores and sources in buckets. Default: AWS_ENDPOINT_URL, STORAGE_EMULATOR_HOST of gs://, AZURE_STORAGE_ENDPOINT of az://."`
	CacheDir    string `name:"cache-dir" placeholder:"DIR" help:"Keep what is read of a store far away in this directory. Default: DSISTORE_CACHE, else nowhere."`
	CacheSize   string `name:"cache-size" placeholder:"SIZE" help:"How much of the disk a new cache may take, as in 200GiB. Default: DSISTORE_CACHE_SIZE."`
}

// StorageOptions returns what diskcache.OpenStore takes.
func (e Endpoint) StorageOptions() map[string]string {
	return given(map[string]string{
		"endpoint_url": e.EndpointURL, "cache_dir": e.CacheDir, "cache_size": e.CacheSize,
	})
}

// SourceOptions returns what object.OpenBucket takes.
func (e Endpoint) SourceOptions() map[string]string {
	return given(map[string]string{"endpoint_url": e.EndpointURL})
}

// given returns options without those that are empty.
func given(options map[string]string) map[string]string {
	maps.DeleteFunc(options, func(_, value string) bool { return value == "" })
	return options
}
