// Package faults holds tests that run dsistore against real servers of object stores which fail on purpose: each
// request at which a process can be killed, answers that are lost, refused, cut and late, many writers at once, and
// servers that do not keep the conditions that commits need.
//
//	test ──> dsi, as a process ──> objectserver.Proxy: the faults ──> versitygw, fake-gcs-server, Azurite
//	  └────> dsi, in this process ──────────────────────────────────────────┘   looks at what is left
//
// Tests whose whole takes minutes do a part of it under go test; flags say how much, and make kill-requests and make
// many-writers run all of it.
package faults
