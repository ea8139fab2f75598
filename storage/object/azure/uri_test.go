package azure

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/dsistore/dsistore/storage/object"
)

func TestURIs(t *testing.T) {
	for uri, want := range map[string]string{
		"az://c": "az://c", "az://c/": "az://c", "az://c/p/q/": "az://c/p/q", "az://c/a=1": "az://c/a=1",
		"abfs://c/p": "az://c/p", "az://c/.p/q.r": "az://c/.p/q.r",
		"abfss://c@account.dfs.core.windows.net/p/": "abfss://c@account.dfs.core.windows.net/p",
	} {
		at, err := ParseURI(uri)
		if err != nil || at.URI() != want {
			t.Errorf("%s: %v, %v", uri, at, err)
		}
	}
	for _, uri := range []string{
		"az://", "az:///p", "gs://c", "az://c/../d", "az://c//d", "az://key:hush@c/p", "az://hush@c/p",
		"az://c/p?sig=hush", "az://c#hush", "abfss://c:hush@account.dfs.core.windows.net/p", "abfss://c@elsewhere/p",
		"az://c/" + strings.Repeat("p/", 300) + "q", "az://c/p.", "az://c/p./q",
		"abfss://c@a.dfs.core.windows.net/p./q",
	} {
		if _, err := ParseURI(uri); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// A URI of another cloud is refused with what reaches it.
func TestOtherClouds(t *testing.T) {
	_, err := ParseURI("abfss://c@account.dfs.core.chinacloudapi.cn/p")
	if err == nil || !strings.Contains(err.Error(), "AZURE_STORAGE_ENDPOINT") {
		t.Error(err)
	}
}

// quiet takes the variables of Azure away.
func quiet(t *testing.T) {
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AZURE_") {
			t.Setenv(name, "")
		}
	}
}

func TestOptions(t *testing.T) {
	quiet(t)
	o, err := ParseOptions(map[string]string{
		"Account_Name": "a", "access_key": "k", "endpoint_url": "https://e", "anon": "False", "allow_http": "true",
	})
	if want := (Options{Account: "a", Key: "k", Endpoint: "https://e", AllowHTTP: true}); err != nil || o != want {
		t.Errorf("%+v, %v", o, err)
	}
	// A credential that is given replaces all of the environment's, and what is given the rest.
	t.Setenv("AZURE_STORAGE_ACCOUNT_KEY", "loaded")
	t.Setenv("AZURE_STORAGE_ACCOUNT_NAME", "there")
	o, err = ParseOptions(map[string]string{"sas_token": "s", "environment.AZURE_STORAGE_CONNECTION_STRING": "c"})
	if want := (Options{Account: "there", SAS: "s"}); err != nil || o != want {
		t.Errorf("%+v, %v", o, err)
	}
	o, err = ParseOptions(map[string]string{"environment.AZURE_STORAGE_ACCOUNT_KEY": "now"})
	if want := (Options{Account: "there", Key: "now"}); err != nil || o != want {
		t.Errorf("%+v, %v", o, err)
	}
	// A client of the environment belongs to the environment's credential.
	for _, c := range []struct {
		given map[string]string
		want  string
	}{
		{map[string]string{"client_id": "mine", "environment.AZURE_CLIENT_ID": "theirs"}, "mine"},
		{map[string]string{"environment.AZURE_CLIENT_ID": "theirs"}, ""},
		{map[string]string{"environment.AZURE_CLIENT_ID": "theirs", "environment.AZURE_CLIENT_SECRET": "s"}, "theirs"},
	} {
		if o, err = ParseOptions(c.given); err != nil || o.ClientID != c.want {
			t.Errorf("%v: %q, %v", c.given, o.ClientID, err)
		}
	}
	for _, given := range []map[string]string{{"account_kee": "hush"}, {"use_emulator": "hush"}} {
		if _, err := ParseOptions(given); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%v: %v", given, err)
		}
	}
	_, err = ParseOptions(map[string]string{"azure_storage_acount_key": ""})
	if err == nil || !strings.Contains(err.Error(), "azure_storage_account_key") {
		t.Errorf("%v: no name that is near", err)
	}
}

func TestResolve(t *testing.T) {
	at := Location{Container: "c"}
	for _, c := range []struct {
		o    Options
		at   Location
		want string // endpoint and account; "": refused
	}{
		{Options{Account: "a", Key: "k"}, at, "https://a.blob.core.windows.net a"},
		{Options{Key: "k"}, Location{Container: "c", Account: "b"}, "https://b.blob.core.windows.net b"},
		{Options{Account: "a"}, Location{Container: "c", Account: "b"}, ""},
		{Options{}, at, ""},
		{Options{Emulator: true}, at, "http://127.0.0.1:10000/devstoreaccount1 devstoreaccount1"},
		{Options{ConnectionString: "UseDevelopmentStorage=true"}, at,
			"http://127.0.0.1:10000/devstoreaccount1 devstoreaccount1"},
		{Options{ConnectionString: "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=aHVzaA==;" +
			"EndpointSuffix=core.chinacloudapi.cn"}, at, "https://a.blob.core.chinacloudapi.cn a"},
		{Options{ConnectionString: "BlobEndpoint=https://host/a/;SharedAccessSignature=sig=hush"}, at,
			"https://host/a "},
		{Options{ConnectionString: "AccountKey=hush"}, at, ""},
		{Options{Endpoint: "http://elsewhere/a", SAS: "hush"}, at, ""},
		{Options{Endpoint: "http://elsewhere/a", SAS: "hush", AllowHTTP: true}, at, "http://elsewhere/a "},
		{Options{Endpoint: "https://host/?sig=hush"}, at, ""},
		{Options{Endpoint: "https://u:hush@host/"}, at, ""},
	} {
		o, err := c.o.resolve(c.at)
		if got := o.Endpoint + " " + o.Account; (err == nil) != (c.want != "") || err == nil && got != c.want ||
			err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("%+v: %s, %v", c.o, got, err)
		}
	}
}

// Errors show neither a key nor a signature, also where no service answers.
func TestSecretsInErrors(t *testing.T) {
	quiet(t)
	_, err := Open("az://c", Options{Account: "a", Key: "hush!"})
	if err == nil || strings.Contains(err.Error(), "hush") {
		t.Error(err)
	}
	at := Location{Container: "c"}
	s := &Store{at: at, clock: &clock{}}
	s.client, err = client(at, Options{Endpoint: "http://127.0.0.1:1/a", SAS: "sv=1&sig=hush"}, s.clock)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.blob("x")
	if err != nil || !strings.Contains(b.URL(), "hush") {
		t.Fatal("the request has no signature", err)
	}
	ask, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = transport.Do(ask); err == nil || !strings.Contains(err.Error(), "hush") {
		t.Fatal("the error had no signature: ", err)
	}
	if err = s.wrap(t.Context(), "x", err); strings.Contains(err.Error(), "hush") || errors.Is(err, object.ErrDenied) {
		t.Error(err)
	}
}

// A client's id alone is that of an identity of the machine, which has several: a token of that one is asked for.
func TestManagedIdentity(t *testing.T) {
	quiet(t)
	for _, v := range []string{"IDENTITY_SERVER_THUMBPRINT", "IMDS_ENDPOINT", "MSI_ENDPOINT", "MSI_SECRET"} {
		t.Setenv(v, "")
	}
	asked := ""
	machine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Query().Get("client_id")
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token": "a", "expires_on": "4102444800", "token_type": "b"}`))
	}))
	t.Cleanup(machine.Close)
	t.Setenv("IDENTITY_ENDPOINT", machine.URL) // as App Service has it
	t.Setenv("IDENTITY_HEADER", "h")
	o, err := ParseOptions(map[string]string{"client_id": "mine"})
	if err != nil {
		t.Fatal(err)
	}
	token, err := o.token()
	if err != nil {
		t.Fatal(err)
	}
	scope := []string{"https://storage.azure.com/.default"}
	got, err := token.GetToken(t.Context(), policy.TokenRequestOptions{Scopes: scope})
	if err != nil || got.Token != "a" || asked != "mine" {
		t.Errorf("%q for %q: %v", got.Token, asked, err)
	}
}

// lookups is a service whose name nobody knows.
type lookups struct{ n int }

func (l *lookups) Do(*http.Request) (*http.Response, error) {
	l.n++
	return nil, &url.Error{Op: "Get", URL: "https://acount.example/?sig=hush", Err: &net.OpError{
		Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "acount.example", IsNotFound: true},
	}}
}

// An account that there is not is looked up a few times, and not for half a minute.
func TestUnknownHost(t *testing.T) {
	l := &lookups{}
	was := transport
	transport = l
	t.Cleanup(func() { transport = was })
	s, err := Open("az://c", Options{Endpoint: "https://acount.example", Anonymous: true})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Stat(t.Context(), "a")
	if err == nil || l.n != 3 || !strings.Contains(err.Error(), "no such host") ||
		strings.Contains(err.Error(), "hush") {
		t.Errorf("%d requests, %v", l.n, err)
	}
}
