// Package gate is how something that gives everything back at its end knows what
// others begin to take meanwhile: whoever begins passes the gate, and the end closes
// it, waits for those inside, and only then looks for what there is.
//
// Owns: a flag and a count.
// Never does: end what has begun; the one who closes it does, or waits.
// Start reading at: Gate.
package gate
