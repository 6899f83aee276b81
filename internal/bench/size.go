package main

import "os"

// sizeFigure compares stripped, static binaries.
func sizeFigure(s *fixture) ([]row, error) {
	ours, err := fileSize(s.harness.program)
	if err != nil {
		return nil, err
	}
	r := row{"consul-ecs, stripped", megabytes, "16.6", "16", ours, nil}
	for _, floor := range []struct{ pkg, what string }{
		{"./internal/bench/floor/hello", "hello world in Go"},
		{"./internal/bench/floor/link", "only Consul's API client and hclog"},
	} {
		path, err := s.harness.build(s.ctx, floor.pkg)
		if err != nil {
			return nil, err
		}
		size, err := fileSize(path)
		if err != nil {
			return nil, err
		}
		r.refs = append(r.refs, reference{floor.what, size})
	}
	return []row{r}, nil
}

func fileSize(path string) (sample, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return sample{float64(st.Size()) / 1e6}, nil
}
