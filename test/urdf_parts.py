"""Build URDFs from parts."""

BODY = (
    '<inertial><origin xyz="0.1 0 0"/><mass value="2"/>'
    '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
)


def link(name: str, content: str = BODY) -> str:
    return f'<link name="{name}">{content}</link>'


def joint(name: str, parent: str, child: str, kind: str = "revolute", content: str = "", axis: str = "0 0 1") -> str:
    limit = "" if "<limit" in content else '<limit lower="-1" upper="2" velocity="3" effort="4"/>'
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<axis xyz="{axis}"/>{limit}{content}</joint>'
    )


def robot(*parts: str) -> str:
    return f'<robot name="arm">{"".join(parts)}</robot>'
