"""`python -m mockube.apiserver`: the API server as a process. `--help` lists its flags."""

import gc

if __name__ == "__main__":
    gc.disable()  # imported objects are never freed, and their garbage collection takes a tenth of the start-up time
