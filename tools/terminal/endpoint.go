package terminal

// Endpoint is the flag of commands that open a store.
type Endpoint struct {
	EndpointURL string `name:"endpoint-url" placeholder:"URL" help:"Service of stores and sources in buckets. Default: AWS_ENDPOINT_URL, STORAGE_EMULATOR_HOST of gs://, AZURE_STORAGE_ENDPOINT of az://."`
}

// StorageOptions returns what object.OpenWith and OpenBucket take.
func (e Endpoint) StorageOptions() map[string]string {
	if e.EndpointURL == "" {
		return nil
	}
	return map[string]string{"endpoint_url": e.EndpointURL}
}
