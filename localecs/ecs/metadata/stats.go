package metadata

import "time"

// Stats are a container's resource figures, a part of docker's statistics object. Two samples a second apart make one:
// they need a second of runtime.
type Stats struct {
	Read    time.Time `json:"read"`
	PreRead time.Time `json:"preread"`

	PIDs    PIDsStats   `json:"pids_stats"`
	Blkio   struct{}    `json:"blkio_stats"`
	Procs   uint32      `json:"num_procs"` // of Windows only
	Storage struct{}    `json:"storage_stats"`
	CPU     CPUStats    `json:"cpu_stats"`
	PreCPU  CPUStats    `json:"precpu_stats"`
	Memory  MemoryStats `json:"memory_stats"`
	// Name and ID are filled in by the handler.
	Name string `json:"name,omitempty"`
	ID   string `json:"id,omitempty"`
	// Networks are by interface name.
	Networks map[string]NetworkStats `json:"networks,omitempty"`

	Rate *NetworkRate `json:"network_rate_stats,omitempty"`
}

// CPUStats are totals in nanoseconds.
type CPUStats struct {
	Usage struct {
		Total  uint64 `json:"total_usage"`
		Kernel uint64 `json:"usage_in_kernelmode"`
		User   uint64 `json:"usage_in_usermode"`
	} `json:"cpu_usage"`
	System uint64 `json:"system_cpu_usage,omitempty"`
	Online uint32 `json:"online_cpus,omitempty"`
}

// PIDsStats counts threads.
type PIDsStats struct {
	Current uint64 `json:"current,omitempty"`
}

// MemoryStats are in bytes. Limit is the container's own, and hierarchical_memory_limit of Stats the least of it and
// the task's.
type MemoryStats struct {
	Usage uint64            `json:"usage,omitempty"`
	Stats map[string]uint64 `json:"stats,omitempty"`
	Limit uint64            `json:"limit,omitempty"`
}

// NetworkStats are totals of one interface.
type NetworkStats struct {
	RxBytes   uint64 `json:"rx_bytes"`
	RxPackets uint64 `json:"rx_packets"`
	RxErrors  uint64 `json:"rx_errors"`
	RxDropped uint64 `json:"rx_dropped"`
	TxBytes   uint64 `json:"tx_bytes"`
	TxPackets uint64 `json:"tx_packets"`
	TxErrors  uint64 `json:"tx_errors"`
	TxDropped uint64 `json:"tx_dropped"`
}

// NetworkRate is in bytes per second.
type NetworkRate struct {
	Rx float64 `json:"rx_bytes_per_sec"`
	Tx float64 `json:"tx_bytes_per_sec"`
}
