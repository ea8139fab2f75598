// Package remote has what the stores behind a network share: reads that continue where an answer broke off, uploads in
// parts, the check who made an object that exists already, and the parsing of options and endpoints.
//
//	gcs.Store --> remote.Reader --> Get (one request of the service), again for what is left
//	s3.Store  --> remote.UploadWriter --> Upload: begin, parts, several at once or in order, complete
//	gcs.Store --> remote.Made   --> who made the object that is there?
package remote
