// Package reader turns a snapshot and a projection into training batches.
package reader
