// Package remotetest tests what stores behind a network have in common: how often they send a request, and what they
// promise where answers are lost, refused and cut. Other promises are those of package objecttest.
package remotetest
