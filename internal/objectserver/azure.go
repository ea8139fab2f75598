package objectserver

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// An Azure is a server that speaks Azure's blob service, on a port of the loopback address.
type Azure struct {
	Endpoint     string // http://127.0.0.1:port/account
	Account, Key string
}

// azurite is Microsoft's emulator of Azure's storage, at the version that is tested.
const azurite = "3.37.0"

// StartAzure starts a server with empty containers of the given names. It ends with the test, which is skipped where
// the server cannot be had.
func StartAzure(t testing.TB, containers ...string) *Azure {
	t.Helper()
	path, err := Azurite()
	if err != nil {
		skip(t, "Azure", err)
	}
	s, stop, err := runAzure(t.Context(), path, containers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return s
}

// RunAzure is StartAzure outside of tests, until stop is called.
func RunAzure(ctx context.Context, containers ...string) (s *Azure, stop func(), err error) {
	path, err := Azurite()
	if err != nil {
		return nil, nil, err
	}
	return runAzure(ctx, path, containers)
}

// Azurite returns the path of the server's program, or why it cannot be had.
func Azurite() (string, error) { return npm("azurite", azurite, "azurite-blob") }

func runAzure(ctx context.Context, path string, containers []string) (*Azure, func(), error) {
	port, err := freePort()
	if err != nil {
		return nil, nil, err
	}
	const account = "devstoreaccount1"
	s := &Azure{
		Endpoint: "http://127.0.0.1:" + port + "/" + account, Account: account,
		// Azurite's documentation has it.
		Key: "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
	}
	stop, err := serve(ctx, s.Endpoint, path, "--blobHost", "127.0.0.1", "--blobPort", port, "--inMemoryPersistence",
		"--skipApiVersionCheck", "--silent", "--disableTelemetry", "--disableProductStyleUrl")
	if err != nil {
		return nil, nil, err
	}
	for _, name := range containers {
		if err := s.Create(ctx, name); err != nil {
			stop()
			return nil, nil, err
		}
	}
	return s, stop, nil
}

// Create makes an empty container.
func (s *Azure) Create(ctx context.Context, name string) error {
	at, err := s.client(name)
	if err == nil {
		_, err = at.Create(ctx, nil)
	}
	return err
}

// client is a client of a container besides the one that is tested.
func (s *Azure) client(name string) (*container.Client, error) {
	key, err := container.NewSharedKeyCredential(s.Account, s.Key)
	if err != nil {
		return nil, err
	}
	return container.NewClientWithSharedKeyCredential(s.Endpoint+"/"+name, key, nil)
}

// Put makes a blob of any name, with metadata.
func (s *Azure) Put(t testing.TB, name, key string, data []byte, metadata ...string) {
	t.Helper()
	at, err := s.client(name)
	if err == nil {
		about := map[string]*string{}
		for i := 0; i < len(metadata); i += 2 {
			about[metadata[i]] = &metadata[i+1]
		}
		_, err = at.NewBlockBlobClient(key).Upload(t.Context(), streaming.NopCloser(bytes.NewReader(data)),
			&blockblob.UploadOptions{Metadata: about})
	}
	if err != nil {
		t.Fatal(key, err)
	}
}

// Uploads returns how many blobs of a container have blocks and were not committed.
func (s *Azure) Uploads(t testing.TB, name string) (n int) {
	t.Helper()
	at, err := s.client(name)
	var all, committed container.ListBlobsFlatResponse
	if err == nil {
		all, err = at.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{
			Include: container.ListBlobsInclude{UncommittedBlobs: true},
		}).NextPage(t.Context())
	}
	if err == nil {
		committed, err = at.NewListBlobsFlatPager(nil).NextPage(t.Context())
	}
	if err == nil && (*all.NextMarker != "" || *committed.NextMarker != "") {
		err = errors.New("more than a page of blobs")
	}
	if err != nil {
		t.Fatal(err)
	}
	return len(all.Segment.BlobItems) - len(committed.Segment.BlobItems)
}

// Options are those by which package azure reaches the server.
func (s *Azure) Options() map[string]string {
	return map[string]string{
		"azure_storage_endpoint": s.Endpoint, "azure_storage_account_name": s.Account,
		"azure_storage_account_key": s.Key,
	}
}

// Environment returns the variables of an environment that do the same.
func (s *Azure) Environment() map[string]string {
	return map[string]string{
		"AZURE_STORAGE_ENDPOINT": s.Endpoint, "AZURE_STORAGE_ACCOUNT_NAME": s.Account,
		"AZURE_STORAGE_ACCOUNT_KEY": s.Key,
	}
}
