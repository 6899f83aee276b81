package cleanup

// What tests together with package controller, which imports this one, need.
var (
	Populated = populated
	InMemory  = inMemory
)

// Tokens are the accessors of all tokens.
func (f *fakeConsul) Tokens() (accessors []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for a := range f.tokens {
		accessors = append(accessors, a)
	}
	return accessors
}
