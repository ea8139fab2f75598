// Package objectserver starts real servers of object stores, for tests and measurements, and breaks what they answer.
//
//	test --> Proxy: an answer lost, cut or late --> versitygw (S3) --> files in a temporary directory
//	                                            --> fake-gcs-server (Google Cloud Storage), in memory
//	                                            --> Azurite (Azure), in memory
//
// The first two are Go programs of their own module, in the folder servers: they are compiled when they are first
// needed, into out/servers, and no part of dsistore. Azurite is installed there by npm. Where that fails, because the
// module proxy is out of reach for instance, tests skip and say why.
package objectserver
