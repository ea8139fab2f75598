package gcs

import (
	"strings"
	"testing"
)

func TestURIs(t *testing.T) {
	for uri, want := range map[string]string{
		"gs://b": "gs://b", "gs://b/": "gs://b", "gcs://b/p/q/": "gs://b/p/q",
		"gs://my.bucket_1/a=1": "gs://my.bucket_1/a=1",
	} {
		at, err := ParseURI(uri)
		if err != nil || at.URI() != want {
			t.Errorf("%s: %v, %v", uri, at, err)
		}
	}
	for _, uri := range []string{
		"gs://", "gs:///p", "s3://b", "gs://b/../c", "gs://b//c", "gs://key:hush@b/p", "gs://b/p?secret=hush",
		"gs://b#hush", "gs://b:80/p", "gs://B/p", "gs://b/" + strings.Repeat("p/", 300) + "q",
	} {
		if _, err := ParseURI(uri); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

func TestOptions(t *testing.T) {
	o, err := ParseOptions(map[string]string{
		"endpoint_url": "https://e", "GOOGLE_APPLICATION_CREDENTIALS": "/file", "service_account_key": "{}",
		"anon": "False", "allow_http": "true",
	})
	want := Options{Endpoint: "https://e", CredentialsFile: "/file", CredentialsJSON: "{}", AllowHTTP: true}
	if err != nil || o != want {
		t.Errorf("%+v, %v", o, err)
	}
	o, err = ParseOptions(map[string]string{"environment.GOOGLE_APPLICATION_CREDENTIALS": "there",
		"google_service_account": "here", "environment.STORAGE_EMULATOR_HOST": "e"})
	if want := (Options{CredentialsFile: "here", Emulator: "e"}); err != nil || o != want {
		t.Errorf("%+v, %v", o, err)
	}
	for _, given := range []map[string]string{{"google_service_acount_key": "hush"}, {"allow_http": "hush"}} {
		_, err := ParseOptions(given)
		if err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%v: %v", given, err)
		}
	}
	_, err = ParseOptions(map[string]string{"google_service_acount_key": ""})
	if err == nil || !strings.Contains(err.Error(), "google_service_account_key") {
		t.Errorf("%v: no name that is near", err)
	}
}

func TestEndpoints(t *testing.T) {
	for _, c := range []struct {
		o        Options
		emulator string // of the environment
		want     string // "": refused
		signed   bool
	}{
		{Options{}, "", "https://storage.googleapis.com", true},
		{Options{Anonymous: true}, "", "https://storage.googleapis.com", false},
		{Options{Endpoint: "https://storage.example/"}, "", "https://storage.example", true},
		{Options{Endpoint: "http://127.0.0.1:9000", CredentialsFile: "f"}, "", "http://127.0.0.1:9000", false},
		{Options{Endpoint: "http://gcs.example", AllowHTTP: true}, "", "http://gcs.example", false},
		{Options{Endpoint: "http://gcs.example"}, "", "", false},
		{Options{Endpoint: "gcs.example"}, "", "", false},
		{Options{Endpoint: "https://u:hush@gcs.example"}, "", "", false},
		{Options{}, "gcs:4443", "http://gcs:4443", false},
		{Options{}, "https://gcs:4443", "https://gcs:4443", false},
		{Options{Emulator: "first"}, "second", "http://first", false},
		{Options{Endpoint: "https://e"}, "second", "https://e", true},
	} {
		t.Setenv("STORAGE_EMULATOR_HOST", c.emulator)
		got, signed, err := c.o.endpoint()
		if c.want == "" {
			if err == nil || strings.Contains(err.Error(), "hush") {
				t.Errorf("%+v: %v", c.o, err)
			}
		} else if err != nil || got.String() != c.want || signed != c.signed {
			t.Errorf("%+v: %v, %v, %v", c.o, got, signed, err)
		}
	}
}
