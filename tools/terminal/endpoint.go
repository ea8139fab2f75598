package terminal

// Endpoint is the flag of commands that open a store.
type Endpoint struct {
	EndpointURL string `name:"endpoint-url" placeholder:"URL" help:"Service of s3:// URIs. Default: AWS_ENDPOINT_URL."`
}

// StorageOptions returns what object.OpenWith takes.
func (e Endpoint) StorageOptions() map[string]string {
	if e.EndpointURL == "" {
		return nil
	}
	return map[string]string{"aws_endpoint": e.EndpointURL}
}
