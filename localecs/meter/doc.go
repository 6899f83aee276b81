// Package meter measures containers for the statistics of the metadata endpoints.
//
// Flow: 1. Begin takes a first sample at a container's start; 2. Stats compares two samples, and has them
// taken each second from the first call on, until no request came for a minute.
//
// Owns: the samples of one task.
// Never does: render an answer: package metadata does.
// Start reading at: Stats in meter.go.
package meter
