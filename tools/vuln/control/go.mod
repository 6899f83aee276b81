module github.com/meshtask/consul-ecs/tools/vuln/control

go 1.27.3

require golang.org/x/text v0.3.7 // GO-2022-1059, fixed in v0.3.8
