package terminal

// Endpoint is the flag of commands that open a store.
type Endpoint struct {
	EndpointURL string `name:"endpoint-url" placeholder:"URL" help:"Service of a store at s3:// or az://. Default: AWS_ENDPOINT_URL, AZURE_STORAGE_ENDPOINT."`
}

// StorageOptions returns what object.OpenWith takes.
func (e Endpoint) StorageOptions() map[string]string {
	if e.EndpointURL == "" {
		return nil
	}
	return map[string]string{"endpoint_url": e.EndpointURL}
}
