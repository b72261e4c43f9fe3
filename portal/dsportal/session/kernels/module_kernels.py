"""Kernels in environment modules: the specs of those in the settings, and their provisioner."""

import shutil
from functools import partial
from typing import Any

from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from traitlets import Dict, List, Unicode

from dsportal.session.modules import ModulesError, ModuleSystem
from dsportal.session.threads import in_thread
from dsportal.session_schema import Kernel

PROVISIONER = "portal-modules"
"""The provisioner's name among the entry points of ``jupyter_client.kernel_provisioners``."""
_ARGUMENTS = {
    "python": ("-m", "ipykernel_launcher", "-f", "{connection_file}"),
    "R": ("--slave", "-e", "IRkernel::main()", "--args", "{connection_file}"),
}


def spec(kernel: Kernel, modules_init: str | None) -> dict[str, Any]:
    """Return a kernel's spec, as in a ``kernel.json``."""
    return {
        "argv": [kernel.interpreter, *_ARGUMENTS[kernel.language]],
        "display_name": kernel.display_name,
        "language": kernel.language,
        "metadata": {
            "debugger": kernel.language == "python",
            "kernel_provisioner": {
                "provisioner_name": PROVISIONER,
                "config": {
                    "modules": list(kernel.modules),
                    "modules_init": modules_init or "",
                    "variables": dict(kernel.environment),
                },
            },
        },
    }


class ModulesProvisioner(LocalProvisioner):
    """Starts a kernel with modules loaded; says why when that cannot be."""

    modules = List(Unicode())
    modules_init = Unicode()
    variables = Dict(value_trait=Unicode(), key_trait=Unicode())

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Load the modules, and find the interpreter among what they bring.

        Raises `ModulesError`, whose words JupyterLab shows beside the notebook.
        """
        prepared = await super().pre_launch(**kwargs)
        environment = dict(prepared["env"])
        if self.modules:
            system = ModuleSystem(self.modules_init)
            environment = await system.loaded(self.modules, environment)
        environment |= self.variables
        # jupyter_client takes "python" for its own interpreter.
        program = self.kernel_spec.argv[0]
        found = await in_thread(partial(self._found, program, environment))
        prepared["cmd"] = [found, *prepared["cmd"][1:]]
        prepared["env"] = environment
        return dict(prepared)

    def _found(self, program: str, environment: dict[str, str]) -> str:
        path = shutil.which(program, path=environment.get("PATH", ""))
        if path is None:
            loaded = f" with {', '.join(self.modules)} loaded" if self.modules else ""
            raise ModulesError(
                f"The program {program} of this kernel was not found{loaded}. "
                "Tell the administrators."
            )
        return path
