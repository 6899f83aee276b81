"""Makes the aws program's waiter for services ask every second, and give up after three times."""
import json
import pathlib

import botocore

name = "ecs/2014-11-13/waiters-2.json"
model = json.loads((pathlib.Path(botocore.__file__).parent / "data" / name).read_text())
model["waiters"]["ServicesStable"].update(delay=1, maxAttempts=3)
own = pathlib.Path.home() / ".aws" / "models" / name
own.parent.mkdir(parents=True)
own.write_text(json.dumps(model))
