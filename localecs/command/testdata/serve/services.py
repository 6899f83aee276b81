"""The life of a service: made, rolled over, rolled back, replaced, deleted."""
import json
import time

import boto3

ecs = boto3.client("ecs")
often = {"Delay": 1, "MaxAttempts": 60}
said = []


def register(family, image):
    ecs.register_task_definition(
        family=family, networkMode="awsvpc", requiresCompatibilities=["FARGATE"], cpu="256", memory="512",
        containerDefinitions=[{"name": "app", "image": image, "command": ["/bin/sleep", "1000"], "stopTimeout": 2}])


def stable(what):
    ecs.get_waiter("services_stable").wait(services=["web"], WaiterConfig=often)
    service = ecs.describe_services(services=["web"])["services"][0]
    deployment = service["deployments"][0]
    said.append([what, service["runningCount"], deployment["rolloutState"], deployment["taskDefinition"].split("/")[-1]])
    return service


register("web", "shell")
register("bad", "none")
ecs.create_service(
    serviceName="web", taskDefinition="web", desiredCount=2, launchType="FARGATE",
    networkConfiguration={"awsvpcConfiguration": {"subnets": ["subnet-1"]}},
    deploymentConfiguration={"deploymentCircuitBreaker": {"enable": True, "rollback": True}})
first = stable("created")["deployments"][0]["id"]
ecs.update_service(service="web", forceNewDeployment=True)
assert stable("rolled over")["deployments"][0]["id"] != first
ecs.update_service(service="web", taskDefinition="bad")
while "FAILED" not in (states := [d["rolloutState"] for d in ecs.describe_services(services=["web"])["services"][0]["deployments"]]):
    assert states != ["COMPLETED"], "the failed deployment is not shown"
    time.sleep(2)
stable("rolled back")
history = ecs.describe_service_deployments(serviceDeploymentArns=[
    d["serviceDeploymentArn"] for d in ecs.list_service_deployments(service="web")["serviceDeployments"]])["serviceDeployments"]
said.append([d["status"] for d in history])
revisions = ecs.describe_service_revisions(serviceRevisionArns=[d["targetServiceRevision"]["arn"] for d in history])
said.append([r["taskDefinition"].split("/")[-1] for r in revisions["serviceRevisions"]])
task = ecs.list_tasks(serviceName="web")["taskArns"][0]
ecs.stop_task(task=task)
stable("replaced")
assert task not in ecs.list_tasks(serviceName="web")["taskArns"]
try:
    ecs.delete_service(service="web")
except ecs.exceptions.InvalidParameterException as e:
    said.append([e.response["Error"]["Message"]])
ecs.delete_service(service="web", force=True)
ecs.get_waiter("services_inactive").wait(services=["web"], WaiterConfig=often)
try:
    ecs.update_service(service="web", desiredCount=1)
except ecs.exceptions.ServiceNotActiveException:
    said.append(["deleted"])
print(json.dumps(said))
