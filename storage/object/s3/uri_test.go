package s3

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
)

func TestURIs(t *testing.T) {
	for uri, want := range map[string]string{
		"s3://b": "s3://b", "s3://b/": "s3://b", "s3a://b/p/q/": "s3://b/p/q",
		"s3://my.bucket/a=1": "s3://my.bucket/a=1",
	} {
		at, err := ParseURI(uri)
		if err != nil || at.URI() != want {
			t.Errorf("%s: %v, %v", uri, at, err)
		}
	}
	for _, uri := range []string{
		"s3://", "s3:///p", "gs://b", "s3://b/../c", "s3://b//c", "s3://key:hush@b/p", "s3://b/p?secret=hush",
		"s3://b#hush",
		"s3://b--use1-az4--x-s3/p", "s3://point--use1-az4--xa-s3/p", "s3://b/" + strings.Repeat("p/", 300) + "q",
	} {
		if _, err := ParseURI(uri); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

func TestOptions(t *testing.T) {
	o, err := ParseOptions(map[string]string{
		"AWS_ENDPOINT_URL": "https://e", "key": "k", "secret": "s", "region_name": "r", "anon": "False",
		"aws_virtual_hosted_style_request": "true", "token": "t",
	})
	want := Options{Endpoint: "https://e", AccessKeyID: "k", SecretAccessKey: "s", SessionToken: "t", Region: "r",
		VirtualHosted: true}
	if err != nil || o != want {
		t.Errorf("%+v, %v", o, err)
	}
	o, err = ParseOptions(map[string]string{"environment.AWS_REGION": "there", "region": "here",
		"environment.AWS_ENDPOINT_URL": "https://e"})
	if want := (Options{Region: "here", Endpoint: "https://e"}); err != nil || o != want {
		t.Errorf("%+v, %v", o, err)
	}
	for _, given := range []map[string]string{{"aws_secret_acces_key": "hush"}, {"allow_http": "hush"}, {"key": "hush"},
		{"secret": "hush"}} {
		_, err := ParseOptions(given)
		if err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%v: %v", given, err)
		}
	}
	_, err = ParseOptions(map[string]string{"aws_secret_acces_key": ""})
	if err == nil || !strings.Contains(err.Error(), "aws_secret_access_key") {
		t.Errorf("%v: no name that is near", err)
	}
}

func TestEndpoints(t *testing.T) {
	for _, name := range []string{"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_ALLOW_HTTP"} {
		t.Setenv(name, "")
	}
	for _, c := range []struct {
		o    Options
		want string // "": refused
	}{
		{Options{Endpoint: "https://minio.example:9000"}, "https://minio.example:9000"},
		{Options{Endpoint: "http://127.0.0.1:9000"}, "http://127.0.0.1:9000"},
		{Options{Endpoint: "http://localhost"}, "http://localhost"},
		{Options{Endpoint: "http://minio.example", AllowHTTP: true}, "http://minio.example"},
		{Options{Endpoint: "http://minio.example"}, ""},
		{Options{Endpoint: "minio.example:9000"}, ""},
		{Options{Endpoint: "https://u:hush@minio.example"}, ""},
	} {
		got, err := c.o.endpoint(nil)
		if got != c.want || (err == nil) != (c.want != "") || err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("%+v: %q, %v", c.o, got, err)
		}
	}
	if got, err := (&Options{}).endpoint(aws.String("http://minio.example")); err == nil {
		t.Errorf("of a profile, without TLS: %q", got)
	}
	if got, err := (&Options{}).endpoint(aws.String("https://last")); got != "https://last" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	t.Setenv("AWS_ENDPOINT", "https://third")
	t.Setenv("AWS_ENDPOINT_URL", "https://second")
	if got, err := (&Options{}).endpoint(aws.String("https://last")); got != "https://second" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	t.Setenv("AWS_ENDPOINT_URL_S3", "https://first")
	if got, err := (&Options{}).endpoint(aws.String("https://last")); got != "https://first" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
