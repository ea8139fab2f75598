// Package objectserver starts real servers of object stores, for tests and measurements, and breaks what they answer.
//
//	test --> Proxy: an answer lost, cut or late --> versitygw (S3) --> files in a temporary directory
//	                                            --> fake-gcs-server (Google Cloud Storage), in memory
//	                                            --> Azurite (Azure), in memory
//	                                            --> other servers of S3, of which some keep no conditions
//
// The first two are Go programs of their own module, in the folder servers: they are compiled when they are first
// needed, into out/servers, and no part of dsistore. Azurite and s3rver are installed there by npm. The others of S3,
// which take longer, are installed where the variable DSISTORE_SERVERS is set. Where a server cannot be had, because
// the module proxy is out of reach for instance, tests skip and say why.
package objectserver
