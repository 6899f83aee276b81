// Package tftest runs the real terraform on a module or an example, with package stub
// as every provider: no AWS account, no registry, no network.
//
// Flow: (1) Main makes the test binary a provider when terraform starts it as
// one; (2) New copies the modules and examples to a temporary directory and
// runs init there with one of the provider's majors; (3) Plan, PlanErrors, Apply, Unchanged, Destroy and Test
// run one command each, and fail the test when it does.
// Owns: the mirror's layout, terraform's environment, reading its JSON.
// Never does: write into the checkout, keep a lock file.
// Start reading at: New.
package tftest
