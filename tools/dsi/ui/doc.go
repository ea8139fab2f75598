// Package ui is the command dsi ui: the page of dsistat, served with figures that keep up with the store.
//
//	browser ── GET /KEY/ ────────────────> site ── Version, Build ──> store
//	        ── GET /KEY/report?seen=V ──>   '── the last report; tables that changed are reported on anew
//
// Nothing is written. Only requests that have the key of the address are answered, and only if they name this machine
// by its address or as localhost. Another site in the same browser cannot know the key, and a name that its owner lets
// point to this machine is refused.
package ui
