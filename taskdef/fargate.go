package taskdef

import "slices"

// Size is what Fargate gives a task: CPU in units of 1/1024 vCPU, memory in MiB.
type Size struct{ CPU, Memory int }

// fargateSizes returns every size that Fargate has, by CPU, then by memory. Tasks
// on Windows have fewer.
func fargateSizes(windows bool) []Size {
	sizes := make([]Size, 0, 80)
	for _, row := range []struct{ cpu, low, high, step int }{
		{256, 512, 512, 512}, {256, 1024, 2048, 1024},
		{512, 1024, 4096, 1024},
		{1024, 2048, 8192, 1024},
		{2048, 4096, 16384, 1024},
		{4096, 8192, 30720, 1024},
		{8192, 16384, 61440, 4096},
		{16384, 32768, 122880, 8192},
	} {
		if windows && (row.cpu < 1024 || row.cpu > 4096) {
			continue
		}
		for memory := row.low; memory <= row.high; memory += row.step {
			sizes = append(sizes, Size{row.cpu, memory})
		}
	}
	return sizes
}

// NextFargateSize returns the smallest size that has at least this CPU and this
// memory: the size itself when it is valid, and false when none is that large.
func NextFargateSize(want Size, windows bool) (Size, bool) {
	sizes := fargateSizes(windows)
	i := slices.IndexFunc(sizes, func(s Size) bool { return s.CPU >= want.CPU && s.Memory >= want.Memory })
	if i < 0 {
		return Size{}, false
	}
	return sizes[i], true
}
