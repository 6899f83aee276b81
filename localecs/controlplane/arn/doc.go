// Package arn builds and reads the names of what the ECS API knows, in every
// form that AWS takes: a short name, or an ARN with the cluster's name in it.
//
// Owns: the forms, and AWS's words about a form that it does not take.
// Never does: know whether the named thing exists.
// Start reading at: Account.
package arn
