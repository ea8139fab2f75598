package azure

import (
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/dsistore/dsistore/storage/object/remote"
)

// A Location is where a store lies: a container, and the prefix of its objects' names, which ends with a slash or is
// empty. Account is empty unless the URI names it.
type Location struct {
	Account, Container, Prefix string
}

// dfsHost follows the account in the host of a URI as Hadoop has it.
const dfsHost = ".dfs.core.windows.net"

const want = "want az://container/prefix, or abfss://container@account" + dfsHost + "/prefix"

// ParseURI parses az://container/prefix and abfss://container@account.dfs.core.windows.net/prefix.
func ParseURI(uri string) (Location, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return Location{}, fmt.Errorf("not a URI of Azure: %s", want)
	}
	hadoop := u.Scheme == "abfs" || u.Scheme == "abfss"
	if u.Scheme != "az" && !hadoop {
		return Location{}, fmt.Errorf("scheme %q: %s", u.Scheme, want)
	}
	if _, secret := u.User.Password(); secret || u.User != nil && !hadoop {
		return Location{}, fmt.Errorf("credentials in a URI would be logged: give AZURE_STORAGE_ACCOUNT_NAME and " +
			"AZURE_STORAGE_ACCOUNT_KEY, or another credential")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return Location{}, fmt.Errorf("options in a URI are not read: give them by environment variables or options")
	}
	at := Location{Container: u.Host}
	if hadoop && u.User != nil {
		account, ok := strings.CutSuffix(u.Host, dfsHost)
		if !ok || account == "" || strings.Contains(account, ".") {
			return Location{}, fmt.Errorf("host %q: %s; in another cloud az://container/prefix, with the URL of the "+
				"blob service in AZURE_STORAGE_ENDPOINT", u.Host, want)
		}
		at.Account, at.Container = account, u.User.Username()
	}
	if at.Container == "" || strings.ContainsAny(at.Container, "/.") {
		return Location{}, fmt.Errorf("no container: %s", want)
	}
	if at.Prefix, err = remote.ParsePrefix(u.Path); err == nil && dotted(at.Prefix) {
		err = fmt.Errorf("prefix %q: Azure drops a dot at the end of a component", at.Prefix)
	}
	return at, err
}

// URI returns az://container/prefix, or with the account, if the location has it, the URI that Hadoop has. It has no
// slash at its end.
func (l Location) URI() string {
	path := strings.TrimSuffix("/"+l.Prefix, "/")
	if l.Account != "" {
		return "abfss://" + l.Container + "@" + l.Account + dfsHost + path
	}
	return "az://" + l.Container + path
}

// Options say how a service is reached. The zero value asks the environment for everything.
type Options struct {
	Account string // empty: AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT, or that of the URI
	// Endpoint is the URL of the account's blob service, with the account in the path where the service has it there.
	// Empty: AZURE_STORAGE_ENDPOINT, or https://account.blob.core.windows.net.
	Endpoint string
	// AllowHTTP allows an endpoint without TLS, which loopback addresses need no leave for.
	AllowHTTP bool
	// Emulator is Azurite at its usual address and with its well-known key, which is no secret.
	Emulator bool

	// The first of these credentials that is not empty is used: a connection string, the account's key, a shared access
	// signature, the secret of a client, a file with a token of a workload identity, ClientID alone: the identity of
	// that id, of those that the machine has. Otherwise azidentity.DefaultAzureCredential tries the environment, a
	// workload's or the machine's identity, and the Azure command line.
	ConnectionString string
	Key              string
	SAS              string
	ClientSecret     string // of ClientID, in TenantID
	TokenFile        string // of ClientID, in TenantID
	// TenantID and ClientID name who asks for tokens.
	TenantID, ClientID string
	// Anonymous requests have no credential: public containers.
	Anonymous bool
}

// credentials reports whether the options say by what the service is asked.
func (o *Options) credentials() bool {
	return o.ConnectionString != "" || o.Key != "" || o.SAS != "" || o.ClientSecret != "" || o.TokenFile != "" ||
		o.Anonymous || o.Emulator
}

// keys are the names of options, those of the object_store library.
var keys = remote.Keys[Options]{
	"azure_storage_account_name":      func(o *Options, v string) error { o.Account = v; return nil },
	"azure_storage_account_key":       func(o *Options, v string) error { o.Key = v; return nil },
	"azure_storage_sas_token":         func(o *Options, v string) error { o.SAS = v; return nil },
	"azure_storage_connection_string": func(o *Options, v string) error { o.ConnectionString = v; return nil },
	"azure_storage_endpoint":          func(o *Options, v string) error { o.Endpoint = v; return nil },
	"azure_storage_tenant_id":         func(o *Options, v string) error { o.TenantID = v; return nil },
	"azure_storage_client_id":         func(o *Options, v string) error { o.ClientID = v; return nil },
	"azure_storage_client_secret":     func(o *Options, v string) error { o.ClientSecret = v; return nil },
	"azure_federated_token_file":      func(o *Options, v string) error { o.TokenFile = v; return nil },
	"azure_storage_use_emulator":      remote.Truth(func(o *Options) *bool { return &o.Emulator }),
	"azure_allow_http":                remote.Truth(func(o *Options) *bool { return &o.AllowHTTP }),
	"azure_skip_signature":            remote.Truth(func(o *Options) *bool { return &o.Anonymous }),
}

// aliases are other names of options.
var aliases = map[string]string{
	"account_name": "azure_storage_account_name", "azure_storage_account": "azure_storage_account_name",
	"account_key": "azure_storage_account_key", "access_key": "azure_storage_account_key",
	"azure_storage_access_key": "azure_storage_account_key", "azure_storage_key": "azure_storage_account_key",
	"master_key": "azure_storage_account_key", "azure_storage_master_key": "azure_storage_account_key",
	"sas_token": "azure_storage_sas_token", "sas_key": "azure_storage_sas_token",
	"azure_storage_sas_key": "azure_storage_sas_token",
	"connection_string":     "azure_storage_connection_string",
	"endpoint":              "azure_storage_endpoint", "endpoint_url": "azure_storage_endpoint",
	"azure_endpoint": "azure_storage_endpoint", "azure_endpoint_url": "azure_storage_endpoint",
	"tenant_id": "azure_storage_tenant_id", "azure_tenant_id": "azure_storage_tenant_id",
	"authority_id": "azure_storage_tenant_id", "azure_authority_id": "azure_storage_tenant_id",
	"azure_storage_authority_id": "azure_storage_tenant_id",
	"client_id":                  "azure_storage_client_id", "azure_client_id": "azure_storage_client_id",
	"client_secret": "azure_storage_client_secret", "azure_client_secret": "azure_storage_client_secret",
	"federated_token_file": "azure_federated_token_file",
	"use_emulator":         "azure_storage_use_emulator", "azure_use_emulator": "azure_storage_use_emulator",
	"allow_http":     "azure_allow_http",
	"skip_signature": "azure_skip_signature", "anon": "azure_skip_signature",
}

// variables are those of the environment that stand for options. The client's are left to azidentity, which knows more
// of them, unless they are given as options.
var variables = []string{
	"AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY",
	"AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_ENDPOINT",
	"AZURE_STORAGE_USE_EMULATOR", "AZURE_ALLOW_HTTP",
}

// ParseOptions reads options by the names that other libraries have for them, in any case, and then the environment for
// what they leave out. Options that have a credential replace all of the environment's. Unknown ones are an error that
// does not show values.
func ParseOptions(given map[string]string) (Options, error) {
	mine, environment := map[string]string{}, map[string]string{}
	for _, name := range variables {
		if v := os.Getenv(name); v != "" {
			environment[remote.EnvironmentPrefix+name] = v
		}
	}
	for name, v := range given {
		if strings.HasPrefix(name, remote.EnvironmentPrefix) {
			environment[name] = v
		} else {
			mine[name] = v
		}
	}
	o, err := keys.Parse(mine, aliases)
	if err != nil {
		return o, err
	}
	e, err := keys.Parse(environment, aliases)
	if err != nil {
		return o, err
	}
	if o.Account == "" && !o.Emulator && o.ConnectionString == "" {
		o.Account = e.Account
	}
	if o.Endpoint == "" && !o.Emulator && o.ConnectionString == "" {
		o.Endpoint = e.Endpoint
	}
	o.AllowHTTP = o.AllowHTTP || e.AllowHTTP
	if !o.credentials() {
		o.ConnectionString, o.Key, o.SAS, o.Emulator = e.ConnectionString, e.Key, e.SAS, e.Emulator
		o.ClientSecret, o.TokenFile = e.ClientSecret, e.TokenFile
	}
	if o.TenantID == "" {
		o.TenantID = e.TenantID
	}
	// Alone it would say which identity of the machine is meant. Of the environment, DefaultAzureCredential asks that.
	if o.ClientID == "" && (o.ClientSecret != "" || o.TokenFile != "") {
		o.ClientID = e.ClientID
	}
	return o, nil
}

// Of Azurite: the account and key that its documentation has.
const (
	emulatorAccount  = "devstoreaccount1"
	emulatorEndpoint = "http://127.0.0.1:10000/" + emulatorAccount
	emulatorKey      = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// resolve fills in what a connection string, the emulator and the location say, and the endpoint.
func (o Options) resolve(at Location) (Options, error) {
	if o.ConnectionString != "" {
		if err := o.connect(); err != nil {
			return o, err
		}
	}
	if o.Emulator {
		if o.Account == "" {
			o.Account = emulatorAccount
		}
		if o.Endpoint == "" {
			o.Endpoint = emulatorEndpoint
		}
		if o.Key == "" && o.SAS == "" {
			o.Key = emulatorKey
		}
	}
	switch {
	case o.Account == "":
		o.Account = at.Account
	case at.Account != "" && o.Account != at.Account:
		return o, fmt.Errorf("account %s is in the URI, and %s in the options or the environment", at.Account,
			o.Account)
	}
	if o.Account == "" && (o.Endpoint == "" || o.Key != "") {
		return o, fmt.Errorf("no account: set AZURE_STORAGE_ACCOUNT_NAME, or account_name of the storage options")
	}
	if o.Endpoint == "" {
		o.Endpoint = "https://" + o.Account + ".blob.core.windows.net"
	}
	o.Endpoint = strings.TrimSuffix(o.Endpoint, "/")
	o.SAS = strings.TrimPrefix(o.SAS, "?")
	if strings.Contains(o.Account, "/") {
		return o, fmt.Errorf("account %q is no name", o.Account)
	}
	_, err := remote.ParseEndpoint(o.Endpoint, o.AllowHTTP, "azure_allow_http=true (or AZURE_ALLOW_HTTP)")
	return o, err
}

// connect fills in what a connection string says. Its errors show no part of it.
func (o *Options) connect() error {
	protocol, suffix, account, endpoint := "https", "core.windows.net", "", ""
	for part := range strings.SplitSeq(o.ConnectionString, ";") {
		name, value, _ := strings.Cut(part, "=")
		switch strings.TrimSpace(name) {
		case "DefaultEndpointsProtocol":
			protocol = value
		case "EndpointSuffix":
			suffix = value
		case "BlobEndpoint":
			endpoint = value
		case "AccountName":
			account = value
		case "AccountKey":
			o.Key = value
		case "SharedAccessSignature":
			o.SAS = value
		case "UseDevelopmentStorage":
			o.Emulator = value == "true"
		}
	}
	if account == "" && endpoint == "" && !o.Emulator {
		return fmt.Errorf("the connection string has neither AccountName nor BlobEndpoint")
	}
	if endpoint == "" && !o.Emulator {
		endpoint = protocol + "://" + account + ".blob." + suffix
	}
	if account != "" {
		o.Account = account
	}
	if o.Endpoint == "" {
		o.Endpoint = endpoint
	}
	return nil
}
