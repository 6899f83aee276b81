package taskdef

// rejection is a definition that breaks one rule: a valid one with some changes.
type rejection struct {
	// name is the mistake; those of awsRejections are known to be refused by AWS.
	name    string
	base    string
	changes []string
	code    string
	// message is the violation's.
	message string
}

// webTask is for Fargate.
const webTask = `{
  "family": "web", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "256", "memory": "512",
  "executionRoleArn": "arn:aws:iam::111122223333:role/execution",
  "taskRoleArn": "arn:aws:iam::111122223333:role/web",
  "volumes": [{"name": "data"}],
  "containerDefinitions": [
    {
      "name": "app", "image": "web:1",
      "portMappings": [{"containerPort": 8080, "name": "http"}],
      "environment": [{"name": "LEVEL", "value": "info"}],
      "secrets": [{"name": "PASSWORD", "valueFrom": "arn:aws:ssm:us-east-1:111122223333:parameter/web"}],
      "mountPoints": [{"sourceVolume": "data", "containerPath": "/data"}],
      "dependsOn": [{"containerName": "init", "condition": "SUCCESS"}],
      "healthCheck": {"command": ["CMD-SHELL", "check"], "interval": 10, "timeout": 5, "retries": 3, "startPeriod": 10},
      "logConfiguration": {"logDriver": "awslogs", "options": {
        "awslogs-group": "web", "awslogs-region": "us-east-1", "awslogs-stream-prefix": "web"}}
    },
    {"name": "init", "image": "init:1", "essential": false}
  ]
}`

// hostTask is for EC2.
const hostTask = `{
  "family": "batch", "networkMode": "bridge", "requiresCompatibilities": ["EC2"],
  "executionRoleArn": "arn:aws:iam::111122223333:role/execution",
  "volumes": [{"name": "data"}],
  "containerDefinitions": [
    {
      "name": "app", "image": "web:1", "memory": 256,
      "environment": [{"name": "LEVEL", "value": "info"}],
      "ulimits": [{"name": "nofile", "softLimit": 1024, "hardLimit": 4096}]
    },
    {"name": "side", "image": "side:1", "memory": 128}
  ]
}`

const (
	app      = "containerDefinitions[0]"
	second   = "containerDefinitions[1]"
	router   = second + `.firelensConfiguration = {"type": "fluentbit"}`
	firelens = app + `.logConfiguration = {"logDriver": "awsfirelens"}`
	efs      = "volumes[0].efsVolumeConfiguration = "
	mesh     = `proxyConfiguration = {"type": "APPMESH", "containerName": "init", "properties": [{"name": ` +
		`"ProxyIngressPort", "value": "15000"}, {"name": "ProxyEgressPort", "value": "15001"}]}`
	logs = app + ".logConfiguration"
)

// awsRejections are definitions that AWS refuses, with its words.
var awsRejections = []rejection{
	{"family missing", webTask, []string{"-family"}, "family-blank", "Family can not be blank."},
	{"family characters", webTask, []string{`family = "a b"`}, "family-characters",
		"Family contains invalid characters."},
	{"container list empty", webTask, []string{`containerDefinitions = []`}, "containers-missing",
		"Container list cannot be empty."},
	{"container name missing", hostTask, []string{"-" + app + ".name"}, "container-name-blank",
		"Container.name should not be null or empty."},
	{"container image missing", webTask, []string{"-" + app + ".image"}, "container-image-blank",
		"Container.image should not be null or empty."},
	{"container name characters", hostTask, []string{second + `.name = "a.b"`}, "container-name",
		"Container.name contains invalid characters."},
	{"container image characters", webTask, []string{app + `.image = "$IMAGE:1"`}, "container-image",
		"Container.image contains invalid characters."},
	{"container image too long", webTask, []string{app + `.image = "` + long(256) + `"`}, "container-image-length",
		"Container.image should be 255 characters or less"},
	{"container names duplicate", hostTask, []string{second + `.name = "app"`}, "container-name-unique",
		"Container names must be unique within a task definition"},
	{"containers too many", webTask, containers(2, 11), "containers-count", "Too many containers."},
	{"no essential container", webTask, []string{app + ".essential = false"}, "essential-container",
		"Task definition doesn't have any essential container."},
	{"definition too long", hostTask, []string{app + `.command = ["` + long(65170) + `"]`}, "document-size",
		"Actual length: '65577'. Max allowed length is '65536' bytes."},
	{"container memory missing", hostTask, []string{"-" + app + ".memory"}, "container-memory-missing",
		"Invalid setting for container 'app'. At least one of 'memory' or 'memoryReservation' must be specified."},
	{"container memory zero", hostTask, []string{app + ".memory = 0"}, "container-resources",
		"Invalid 'memory' setting for container 'app'."},
	{"memory below reservation", hostTask, []string{app + ".memoryReservation = 512"}, "container-memory-reservation",
		"'memory' must be greater than or equal to 'memoryReservation'"},
	{"container memory over task", webTask, []string{app + ".memory = 1024"}, "container-memory",
		"The 'memory' setting for container 'app' is greater than for the task."},
	{"reservation sum over task", webTask, []string{app + ".memoryReservation = 300", second + ".memoryReservation = 300"}, "reservation-sum", "The sum of all container 'memoryReservation' values cannot be greater than the value of the task 'memory'."},
	{"cpu sum over task", webTask, []string{app + ".cpu = 200", second + ".cpu = 100"}, "cpu-sum",
		"The sum of all container 'cpu' values cannot be greater than the value of the task 'cpu'."},
	{"fargate cpu missing", webTask, []string{"-cpu"}, "fargate-cpu",
		"Fargate requires that 'cpu' be defined at the task level."},
	{"fargate memory missing", webTask, []string{"-memory", app + ".memory = 256", second + ".memory = 256"},
		"fargate-memory", "Fargate requires that 'memory' be defined at the task level."},
	{"fargate size 1024 1024", webTask, []string{`cpu = "1024"`, `memory = "1024"`}, "fargate-size", "No Fargate configuration exists for given values: 1024 CPU, 1024 memory. See the Amazon ECS documentation for the valid values."},
	{"fargate size 512 512", webTask, []string{`cpu = "512"`}, "fargate-size", "No Fargate configuration exists for " +
		"given values: 512 CPU, 512 memory. See the Amazon ECS documentation for the valid values."},
	{"fargate size windows 512", webTask, []string{`cpu = "512"`, `memory = "2048"`, `runtimePlatform = {"operatingSystemFamily": "WINDOWS_SERVER_2022_CORE"}`}, "fargate-size", "No Fargate configuration exists for given values: 512 CPU, 2048 memory. See the Amazon ECS documentation for the valid values."},
	{"task cpu empty", webTask, []string{`cpu = ""`}, "task-cpu", "Invalid 'cpu' setting for task."},
	{"fargate bridge", webTask, []string{`networkMode = "bridge"`}, "fargate-network-mode",
		"Fargate only supports network mode 'awsvpc'."},
	{"fargate network mode absent", webTask, []string{"-networkMode"}, "fargate-network-mode",
		"Fargate only supports network mode 'awsvpc'."},
	{"awsvpc hostname", webTask, []string{app + `.hostname = "web"`}, "awsvpc-hostname",
		"hostname is not supported on container when networkMode=awsvpc."},
	{"awsvpc links", webTask, []string{app + `.links = ["init"]`}, "awsvpc-links",
		"Links are not supported when networkMode=awsvpc."},
	{"awsvpc extra hosts", webTask, []string{app + `.extraHosts = [{"hostname": "x", "ipAddress": "10.0.0.1"}]`},
		"awsvpc-extra-hosts", "Extra hosts are not supported on container when networkMode=awsvpc."},
	{"awsvpc dns servers", webTask, []string{app + `.dnsServers = ["10.0.0.2"]`}, "awsvpc-dns-servers",
		"DNS servers are not supported on container when networkMode=awsvpc."},
	{"awsvpc disable networking", webTask, []string{app + ".disableNetworking = true"}, "awsvpc-disable-networking",
		"Disable Networking is not supported on container when networkMode=awsvpc."},
	{"awsvpc host port differs", webTask, []string{app + ".portMappings[0].hostPort = 80"}, "port-match",
		"When networkMode=awsvpc, the host ports and container ports in port mappings must match."},
	{"awsvpc host port zero", webTask, []string{app + ".portMappings[0].hostPort = 0"}, "port-match",
		"When networkMode=awsvpc, the host ports and container ports in port mappings must match."},
	{"host network port differs", hostTask, []string{`networkMode = "host"`, app + `.portMappings = [{"containerPort": 80, "hostPort": 8080}]`}, "port-match", "When networkMode=host, the host ports and container ports in port mappings must match."},
	{"host port twice", hostTask, []string{app + `.portMappings = [{"containerPort": 80, "hostPort": 3000}]`, second + `.portMappings = [{"containerPort": 90, "hostPort": 3000}]`}, "port-host-unique", "TCP host port '3000' is mapped multiple times in task."},
	{"port range overlap", webTask, []string{app + `.portMappings = [{"containerPortRange": "8080-8090"}, {"containerPortRange": "8085-8095"}]`}, "port-container-unique", "TCP container port '8085' is used multiple times in task when networkMode=awsvpc."},
	{"port range reversed", webTask, []string{app + `.portMappings = [{"containerPortRange": "8090-8080"}]`},
		"port-range", "Invalid 'containerPortRange' setting for container 'app'."},
	{"port range and port", webTask, []string{app + `.portMappings[0].containerPortRange = "8080-8090"`},
		"port-and-range", "Invalid port mapping for container 'app', cannot specify both single port and port range."},
	{"port name twice", webTask, []string{app + `.portMappings[1] = {"containerPort": 8081, "name": "http"}`},
		"port-name-unique", "When networkMode=awsvpc, port mapping name is already used"},
	{"fargate ipc mode", webTask, []string{`ipcMode = "task"`}, "fargate-task-setting",
		"Fargate compatible task definitions do not support ipcMode"},
	{"fargate pid mode host", webTask, []string{`pidMode = "host"`}, "fargate-pid-mode", "Tasks using the Fargate " +
		"launch type do not support pidMode 'host'. The supported value for pidMode is 'task'."},
	{"fargate privileged", webTask, []string{app + ".privileged = true"}, "fargate-privileged",
		"Fargate requires that the ‘privileged’ setting be ‘false’ at the container level."},
	{"fargate capability", webTask, []string{app + `.linuxParameters = {"capabilities": {"add": ["SYS_PTRACE", ` +
		`"NET_ADMIN"]}}`}, "fargate-capability", "NET_ADMIN is not allowed on Fargate."},
	{"fargate devices", webTask, []string{app + `.linuxParameters = {"devices": [{"hostPath": "/dev/kvm"}]}`},
		"fargate-container-setting", "Fargate compatible task definitions do not support devices"},
	{"fargate shared memory", webTask, []string{app + `.linuxParameters = {"sharedMemorySize": 64}`},
		"fargate-container-setting", "Fargate compatible task definitions do not support sharedMemorySize"},
	{"fargate max swap", webTask, []string{app + `.linuxParameters = {"maxSwap": 64}`}, "fargate-container-setting",
		"Fargate compatible task definitions do not support maxSwap"},
	{"fargate docker security options", webTask, []string{app + `.dockerSecurityOptions = ["no-new-privileges"]`},
		"fargate-container-setting", "Fargate compatible task definitions do not support dockerSecurityOptions"},
	{"fargate docker volume", webTask, []string{`volumes[0].dockerVolumeConfiguration = {"scope": "task"}`},
		"fargate-volume", "Fargate compatible task definitions do not support dockerVolumeConfiguration"},
	{"fargate source path", webTask, []string{`volumes[0].host = {"sourcePath": "/srv"}`}, "fargate-volume",
		"Fargate compatible task definitions do not support sourcePath"},
	{"fargate gpu", webTask, []string{app + `.resourceRequirements = [{"type": "GPU", "value": "1"}]`}, "fargate-gpu",
		"Tasks using the Fargate launch type do not support GPU resource requirements."},
	{"fargate placement constraints", webTask, []string{`placementConstraints = [{"type": "memberOf", "expression": "true"}]`}, "fargate-task-setting", "Fargate compatible task definitions do not support constraints"},
	{"fargate log driver", webTask, []string{logs + ` = {"logDriver": "json-file"}`}, "fargate-log-driver",
		"json-file is not a valid log driver. Must be one of [awslogs,splunk,awsfirelens]"},
	{"fargate awslogs without execution role", webTask, []string{"-executionRoleArn", "-" + app + ".secrets"}, "fargate-execution-role-logs", "Fargate requires task definition to have execution role ARN to support log driver awslogs."},
	{"fargate ecr without execution role", webTask, []string{"-executionRoleArn", "-" + app + ".secrets", "-" + logs, app + `.image = "111122223333.dkr.ecr.us-east-1.amazonaws.com/web:1"`}, "fargate-execution-role-image", "Fargate requires task definition to have execution role ARN to support ECR images."},
	{"fargate awslogs without stream prefix", webTask, []string{"-" + logs + ".options.awslogs-stream-prefix"}, "fargate-stream-prefix", "Fargate requires log configuration options to include awslogs-stream-prefix to support log driver awslogs."},
	{"ephemeral storage on ec2", hostTask, []string{`ephemeralStorage = {"sizeInGiB": 50}`}, "ephemeral-storage-ec2",
		"Tasks using the EC2 launch type do not support EphemeralStorage."},
	{"ephemeral storage 20", webTask, []string{`ephemeralStorage = {"sizeInGiB": 20}`}, "ephemeral-storage-low",
		"EphemeralStorage size should be at least 21"},
	{"ephemeral storage 201", webTask, []string{`ephemeralStorage = {"sizeInGiB": 201}`}, "ephemeral-storage-high", "EphemeralStorage size should be at most 200"},
	{"inference accelerators retired", hostTask, []string{`inferenceAccelerators = [{"deviceName": "a", "deviceType": "eia2.medium"}]`}, "inference-accelerators", "Unsupported field 'inferenceAccelerators'."},
	{"awslogs options missing", hostTask, []string{logs + ` = {"logDriver": "awslogs"}`}, "awslogs-options", "Log driver awslogs requires options: awslogs-region, awslogs-group"},
	{"awslogs group missing", webTask, []string{"-" + logs + ".options.awslogs-group"}, "awslogs-options", "Log driver awslogs requires options: awslogs-group"},
	// AWS knows awslogs-datetime-format by now, so another option takes its place.
	{"awslogs option unknown", webTask, []string{logs + `.options.awslogs-date-format = "x"`}, "awslogs-option", "Log driver awslogs disallows options: awslogs-date-format"},
	{"awsfirelens without router", webTask, []string{firelens}, "firelens-router", "When awsfirelens log driver is specified in log configuration, a firelens configuration object must be configured in one of the containers."},
	{"router without awsfirelens", webTask, []string{router}, "firelens-unused", "When a firelensConfiguration object is specified, at least one container has to be configured with the awsfirelens log driver."},
	{"firelens s3 value not arn", hostTask, []string{firelens, second + `.firelensConfiguration = {"type": "fluentbit", "options": {"config-file-type": "s3", "config-file-value": "s3://bucket/fluent.conf"}}`}, "firelens-config-file", "Invalid arn syntax."},
	{"secrets without execution role", webTask, []string{"-executionRoleArn", "-" + logs}, "secret-role", "When you are specifying container secrets, you must also specify a value for 'executionRoleArn'."},
	{"private registry without execution role", hostTask, []string{"-executionRoleArn", app + `.repositoryCredentials = {"credentialsParameter": "arn:aws:secretsmanager:us-east-1:111122223333:secret:r"}`}, "repository-credentials-role", "Private repository authentication requires that the task definition specify a value for executionRoleArn."},
	{"secret named like variable", webTask, []string{app + `.environment[0].name = "PASSWORD"`}, "secret-name", "The secret name must be unique and not shared with any new or existing environment variables set on the container, such as 'PASSWORD'."},
	{"secret names duplicate", webTask, []string{app + `.secrets[1] = {"name": "PASSWORD", "valueFrom": "other"}`}, "secret-name-unique", "Duplicate secret names found: PASSWORD. Each secret name must be unique."},
	{"secret of another account", webTask, []string{app + `.secrets[0].valueFrom = "arn:aws:ssm:us-east-1:444455556666:parameter/web"`}, "secret-account", "The Systems Manager parameter ARN has a different account ID than the current account. The current account ID is 111122223333 and the ARN account ID is 444455556666. Cross-account access for ARNs is not currently supported."},
	{"variable name blank", webTask, []string{app + `.environment[0].name = ""`}, "variable-name", "Environment variable name cannot be null or blank."},
	{"environment files eleven", webTask, []string{app + ".environmentFiles = " + repeated(11, `{"type": "s3", "value": "arn:aws:s3:::b/web.env"}`)}, "environment-files-count", "The maximum number of environment files was exceeded. Specify ten or less and try again."},
	{"environment file not arn", webTask, []string{app + `.environmentFiles = [{"type": "s3", "value": "s3://b/web.env"}]`}, "environment-file-arn", "Invalid arn syntax."},
	{"role not a role", webTask, []string{`executionRoleArn = "arn:aws:iam::111122223333:user/web"`}, "role", "Role is not valid"},
	{"task role empty", webTask, []string{`taskRoleArn = ""`}, "role", "Role is not valid"},
	{"volume name characters", webTask, []string{`volumes[1] = {"name": "a.b"}`}, "volume-name", "volume.name contains invalid characters."},
	{"volume unknown", webTask, []string{app + `.mountPoints[0].sourceVolume = "date"`}, "volume-unknown", "Unknown volume 'date'."},
	{"mount without source volume", webTask, []string{"-" + app + ".mountPoints[0].sourceVolume"}, "volume-unknown", "Unknown volume 'null'."},
	{"volume at launch not mounted", webTask, []string{`volumes[1] = {"name": "v", "configuredAtLaunch": true}`}, "volume-unused", "Volumes [v] are not referenced by any of the containers"},
	{"volume of two types", hostTask, []string{`volumes[0].host = {"sourcePath": "/srv"}`, efs + `{"fileSystemId": "fs-1"}`}, "volume-type", "When the volume parameter is specified, only one volume configuration type should be used."},
	{"source path blank", hostTask, []string{`volumes[0].host = {"sourcePath": ""}`}, "volume-source-path", "host.sourcePath should not be blank."},
	{"efs access point and root directory", webTask, []string{efs + `{"fileSystemId": "fs-1", "rootDirectory": "/srv", "transitEncryption": "ENABLED", "authorizationConfig": {"accessPointId": "fsap-1"}}`}, "efs-root-directory", `When using an EFS access point, the root directory must either be set to "/" or be omitted.`},
	{"efs iam without transit encryption", webTask, []string{efs + `{"fileSystemId": "fs-1", "authorizationConfig": {"iam": "ENABLED"}}`}, "efs-iam-encryption", "EFS IAM authorization requires TransitEncryption to be enabled."},
	{"efs port without transit encryption", webTask, []string{efs + `{"fileSystemId": "fs-1", "transitEncryptionPort": 2049}`}, "efs-port-encryption", "TransitEncryptionPort requires that TransitEncryption is enabled."},
	{"docker volume task autoprovision", hostTask, []string{`volumes[0].dockerVolumeConfiguration = {"scope": "task", "autoprovision": false}`}, "volume-autoprovision", "When 'scope' parameter is 'task', 'autoprovision' must either not be specified or set to 'True'."},
	{"volumes from unknown", webTask, []string{app + `.volumesFrom = [{"sourceContainer": "nope"}]`}, "volumes-from", "Invalid 'volumesFrom' setting. Unknown container: 'nope'."},
	{"depends on essential success", webTask, []string{second + ".essential = true"}, "depends-on-essential", "A dependency container with SUCCESS or COMPLETE condition cannot be an essential container"},
	{"depends on unknown", webTask, []string{app + `.dependsOn[0].containerName = "nope"`}, "depends-on-exists", "Cannot depend on container + 'nope' because it does not exist"},
	{"depends on healthy without check", webTask, []string{app + `.dependsOn[0].condition = "HEALTHY"`}, "depends-on-health-check", "A dependency container with HEALTHY condition must have health check configured"},
	{"health interval 301", webTask, []string{app + ".healthCheck.interval = 301"}, "health-check-high", "Health check interval must be less than or equal to the maximum allowed value 300 for container 'app'"},
	{"health timeout 61", webTask, []string{app + ".healthCheck.timeout = 61"}, "health-check-high", "Health check timeout must be less than or equal to the maximum allowed value 60 for container 'app'"},
	{"health retries 11", webTask, []string{app + ".healthCheck.retries = 11"}, "health-check-high", "Health check retries must be less than or equal to the maximum allowed value 10 for container 'app'"},
	{"health start period 301", webTask, []string{app + ".healthCheck.startPeriod = 301"}, "health-check-high", "Health check startPeriod must be less than or equal to the maximum allowed value 300 for container 'app'"},
	{"restart attempt period 30", webTask, []string{app + `.restartPolicy = {"enabled": true, "restartAttemptPeriod": 30}`}, "restart-attempt-period", "The 'restartAttemptPeriod' setting for container 'app' must be between 60 and 1800."},
	{"ulimit soft over hard", hostTask, []string{app + ".ulimits[0].softLimit = 8192"}, "ulimit", "Soft limit exceeds hard limit for ulimit nofile"},
	{"tmpfs size zero", hostTask, []string{app + `.linuxParameters = {"tmpfs": [{"containerPath": "/tmp", "size": 0}]}`}, "tmpfs-size", "The container has an invalid tmpfs size value specified. It must be a non-zero, non-negative integer."},
	{"placement distinct instance", hostTask, []string{`placementConstraints = [{"type": "distinctInstance"}]`}, "placement-constraint", "constraint.type 'distinctInstance' is not supported."},
	{"tags empty", webTask, []string{`tags = []`}, "tags-empty", "Tags can not be empty."},
	{"proxy not awsvpc", hostTask, []string{mesh, `proxyConfiguration.containerName = "side"`}, "proxy-network-mode", "APPMESH proxy configuration is only supported in networkMode=awsvpc"},
	{"proxy container unknown", webTask, []string{mesh, `proxyConfiguration.containerName = "proxy"`}, "proxy-container", "Proxy container [proxy] does not exist."},
	{"proxy ports missing", webTask, []string{mesh, `proxyConfiguration.properties = []`}, "proxy-ingress-port", "Ingress port not found"},
	{"proxy property without value", webTask, []string{mesh, `proxyConfiguration.properties[2] = {"name": "IgnoredUID"}`}, "proxy-property", "ProxyConfiguration properties value cannot be null."},
}
