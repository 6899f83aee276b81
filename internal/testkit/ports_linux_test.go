package testkit

import "testing"

// TestFreePortIsGivenOnce: also to another process, which claims by the same name.
func TestFreePortIsGivenOnce(t *testing.T) {
	t.Parallel()
	ports, err := FreePorts(3)
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range ports {
		if claim(port) == nil {
			t.Errorf("port %d was given twice", port)
		}
	}
}
