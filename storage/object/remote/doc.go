// Package remote has what the stores behind a network share: reads that go on where an answer broke off, whose object a
// creation met, and how options and endpoints are read.
//
//	gcs.Store --> remote.ReadAt --> Get (one request of the service), again for what is left
//	gcs.Store --> remote.Made   --> who made the object that is there?
package remote
