package terminal

// Endpoint is the flag of commands that open a store.
type Endpoint struct {
	EndpointURL string `name:"endpoint-url" placeholder:"URL" help:"Endpoint of the object store, for stores and sources. Default: AWS_ENDPOINT_URL; for gs:// STORAGE_EMULATOR_HOST, for az:// AZURE_STORAGE_ENDPOINT."`
}

// StorageOptions returns what object.OpenWith and OpenBucket take.
func (e Endpoint) StorageOptions() map[string]string {
	if e.EndpointURL == "" {
		return nil
	}
	return map[string]string{"endpoint_url": e.EndpointURL}
}
