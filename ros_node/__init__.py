"""The ROS 2 node: the only place of this repository that knows ROS.

perception_node.py   the executable
serve.py             runs the node until it is asked to end
node.py              puts the parts together
camera.py            which topic, which message type, what the middleware reports
messages.py          what goes in and out as ROS messages
cdr.py               detections as bytes on the wire, for the hot path
worker.py            the thread that loads, compiles and runs the pipeline, newest frame first
accounting.py        where every image went
timing.py            how long every stage took
diagnostics.py       what of this is said on /diagnostics
parameters.py        what a user can set, and when
process.py           signals, exit codes, the allocator
"""
