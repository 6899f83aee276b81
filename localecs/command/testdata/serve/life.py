"""A task's whole life through boto3, against the endpoints of the environment.

usage: life.py TASK-DEFINITION-FILE LOGS
"""
import json
import pathlib
import sys
import time

import boto3
from botocore.exceptions import ClientError

ecs = boto3.client("ecs")
often = {"Delay": 1, "MaxAttempts": 60}
network = {"awsvpcConfiguration": {"subnets": ["subnet-1"], "securityGroups": ["sg-1"], "assignPublicIp": "DISABLED"}}


def want(got, expected, what):
    if got != expected:
        sys.exit(f"{what}: got {got!r}, want {expected!r}")


def refused(code, message, call, **arguments):
    try:
        call(**arguments)
    except ClientError as e:
        want((e.response["Error"]["Code"], e.response["Error"]["Message"]), (code, message), f"{call.__name__} {arguments}")
        return
    sys.exit(f"{call.__name__} {arguments} was not refused")


want(boto3.client("sts").get_caller_identity()["Arn"], "arn:aws:iam::123456789012:user/localecs", "caller")
want(boto3.client("iam").get_user()["User"]["UserName"], "localecs", "user")

with open(sys.argv[1]) as f:
    definition = ecs.register_task_definition(**{**json.load(f), "family": "boto"})
arn = definition["taskDefinition"]["taskDefinitionArn"]
want(arn, "arn:aws:ecs:us-east-1:123456789012:task-definition/boto:1", "revision")
want(definition["tags"], [{"key": "team", "value": "shop"}], "tags of the definition")
want(ecs.describe_task_definition(taskDefinition="boto")["taskDefinition"]["status"], "ACTIVE", "status")

order = dict(
    taskDefinition="boto", count=2, networkConfiguration=network, launchType="FARGATE", propagateTags="TASK_DEFINITION",
    enableECSManagedTags=True, startedBy="life", clientToken="one", tags=[{"key": "more", "value": "yes"}],
    overrides={"containerOverrides": [{"name": "app", "environment": [{"name": "GREETING", "value": "salut"}]}]},
)
run = ecs.run_task(**order)
want((len(run["tasks"]), run["failures"]), (2, []), "run_task")
want({t["lastStatus"] for t in run["tasks"]}, {"PROVISIONING"}, "new tasks")
tasks = [t["taskArn"] for t in run["tasks"]]
want([t["taskArn"] for t in ecs.run_task(**order)["tasks"]], tasks, "the same client token")
try:
    ecs.run_task(**{**order, "count": 1})
    sys.exit("a client token was taken twice")
except ecs.exceptions.ConflictException as e:
    want(e.response["resourceIds"], tasks, "conflict")

ecs.get_waiter("tasks_running").wait(cluster="default", tasks=tasks, WaiterConfig=often)
pages = ecs.get_paginator("list_tasks").paginate(startedBy="life", PaginationConfig={"PageSize": 1})
want(sorted(a for page in pages for a in page["taskArns"]), sorted(tasks), "list_tasks")
task = ecs.describe_tasks(tasks=[tasks[0]], include=["TAGS"])["tasks"][0]
want((task["lastStatus"], task["version"], task["launchType"]), ("RUNNING", 3, "FARGATE"), "status")
want({t["key"]: t["value"] for t in task["tags"]}, {"team": "shop", "more": "yes", "aws:ecs:clusterName": "default"}, "tags")
want(ecs.list_tags_for_resource(resourceArn=tasks[0])["tags"], task["tags"], "list_tags_for_resource")
details = {d["name"]: d["value"] for d in task["attachments"][0]["details"]}
want(details["privateIPv4Address"], task["containers"][0]["networkInterfaces"][0]["privateIpv4Address"], "address")
want(ecs.describe_tasks(tasks=["0" * 32])["failures"][0]["reason"], "MISSING", "unknown task")

refused("ClusterNotFoundException", "Cluster not found.", ecs.list_tasks, cluster="nowhere")
refused("InvalidParameterException", "Tasks cannot be empty.", ecs.describe_tasks, tasks=[])
refused("InvalidParameterException", "Network Configuration must be provided when networkMode 'awsvpc' is specified.", ecs.run_task, taskDefinition="boto")
refused("ClientException", "Unable to describe task definition.", ecs.describe_task_definition, taskDefinition="boto:9")

for t in tasks:  # a container that runs has not said anything yet
    log = pathlib.Path(sys.argv[2], "boto-" + t.rpartition("/")[2], "app.log")
    for _ in range(600):
        if log.read_text():
            break
        time.sleep(0.1)
    want(ecs.stop_task(task=t, reason="the end")["task"]["desiredStatus"], "STOPPED", "stop_task")
want(ecs.list_tasks(startedBy="life")["taskArns"], [], "tasks that are to run")
ecs.get_waiter("tasks_stopped").wait(cluster="default", tasks=tasks, WaiterConfig=often)
task = ecs.describe_tasks(tasks=tasks)["tasks"][1]
want((task["stopCode"], task["stoppedReason"]), ("UserInitiated", "the end"), "end")
# 137 when the shell was too slow for its stopTimeout.
want(task["containers"][0]["exitCode"] in (3, 137), True, "exit code")
want(ecs.deregister_task_definition(taskDefinition=arn)["taskDefinition"]["status"], "INACTIVE", "deregistered")
want(ecs.list_task_definitions(status="INACTIVE")["taskDefinitionArns"], [arn], "inactive revisions")
print(json.dumps(tasks))
