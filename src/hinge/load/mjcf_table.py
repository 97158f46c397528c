"""What becomes of every attribute of MJCF; docs/mjcf.md shows this table.

An attribute that is not in it belongs to a MuJoCo that is newer than this table: MuJoCo reads it,
hinge does not know what it does, and the loader says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["LABELS", "SKIPPED", "TABLE", "Row", "row_of", "unknown"]


class Row(NamedTuple):
    """Attributes of an element; "*" is all that are nowhere else.

    read: they are in the robot, or in the numbers that MuJoCo's compiler makes of them.
    named: by the words with which a warning begins that names what they act on.  Some are read in
    part, and in both: a spring's stiffness is, its polynomial is not.
    solver: of MuJoCo's contacts, the softness of its constraints, and its integration, where hinge
    has `Ground`, rigid stops and constraints, and the arguments of `simulate`.
    unused: names, looks, files and what is measured; nothing moves otherwise.
    """

    read: str = ""
    named: Mapping[str, str] = {}
    solver: str = ""
    unused: str = ""

    @property
    def all(self) -> set[str]:
        """Every attribute of the row."""
        return set(" ".join([self.read, *self.named.values(), self.solver, self.unused]).split())


# elements that are not passed to MuJoCo; of a sensor, those that are no plugin
SKIPPED = ("texture", "layer", "skin", "keyframe", "custom", "visual", "statistic", "sensor")

CONTACTS, PAIRS, FLUID = "contacts with the ground of", "contact pairs", "the fluid"
EQUALITIES, FLEXES, TENDONS = "equality constraints", "flexes", "tendons"
GRAVITY, PLUGINS = "gravity compensation of bodies", "plugins of bodies"
YIELDING = "springs of joints that yield:"
SPRINGS, DAMPING = "polynomial springs of joints", "polynomial damping of joints"
BALLS, MOTOR_DAMPING = "limits of ball joints", "polynomial damping of actuators"
SERVOS = "servos, whose law is hinge.control.ActuatorForces:"
ACTING_PLUGINS = "plugins of actuators"
TENDON_DRIVES = "armature and damping of tendons by actuators"
SKINS = "skins"
LABELS = (
    *(SPRINGS, YIELDING, BALLS, DAMPING, MOTOR_DAMPING, TENDON_DRIVES, EQUALITIES, CONTACTS, PAIRS),
    *(TENDONS, GRAVITY, PLUGINS, ACTING_PLUGINS, SERVOS, FLEXES, SKINS, FLUID),
)

_POSE = "pos quat axisangle euler xyaxes zaxis"
_SOFT = "solref solimp"
_SOFT_LIMIT = "margin solreflimit solimplimit solreffriction solimpfriction"
_CONTACT = f"contype conaffinity condim friction {_SOFT} solmix margin gap priority"
_TENDON = "stiffness springlength springyield damping armature frictionloss range limited"
_TENDON_ROW = Row(
    read="name class actuatorfrcrange actuatorfrclimited",
    named={TENDONS: _TENDON},
    solver=_SOFT_LIMIT,
    unused="width material rgba group user",
)
_EQUALITY_ROW = Row(
    named={
        EQUALITIES: "active body1 body2 site1 site2 anchor relpose joint1 joint2 polycoef tendon1 "
        "tendon2 flex cell solref"
    },
    solver="solimp torquescale",
    unused="name class",
)
_ACTUATOR_ROW = Row(
    read="name class joint jointinparent tendon site refsite body slidersite cranksite cranklength "
    "group gear ctrlrange ctrllimited forcerange forcelimited actrange actlimited inheritrange "
    "posrange velrange ffrange input delay actdim actearly dyntype gaintype biastype dynprm "
    "gainprm biasprm kp ki kv dampratio imax slewmax timeconst area diameter bias gain armature "
    "damping range force scale lmin lmax vmax fpmax fvmax tausmooth motorconst resistance "
    "inductance nominal saturation thermal cogging controller lugre",
    named={SERVOS: "kp ki kv biasprm", MOTOR_DAMPING: "damping", ACTING_PLUGINS: "plugin instance"},
    unused="lengthrange user nsample interp",
)
_ALL = Row(read="*")
_NONE = Row(unused="*")
_FLEX = Row(named={FLEXES: "*"})

TABLE: Mapping[str, Row] = {
    "mujoco": _ALL,
    "compiler": Row(
        read="angle autolimits balanceinertia boundinertia boundmass coordinate eulerseq "
        "fusestatic alignfree inertiafromgeom inertiagrouprange settotalmass fitaabb conflict "
        "assetdir meshdir strippath",
        unused="texturedir discardvisual usethread savecanonical savecompiled saveinertial "
        "passthrough",
    ),
    "lengthrange": _NONE,
    "option": Row(
        read="gravity actuatorgroupdisable",
        named={FLUID: "density viscosity wind"},
        solver="timestep integrator cone jacobian solver impratio tolerance iterations "
        "ls_iterations ls_tolerance noslip_iterations noslip_tolerance ccd_iterations "
        "ccd_tolerance sdf_iterations sdf_initpoints sleep_tolerance o_margin o_solref o_solimp "
        "o_friction apirate",
        unused="magnetic",
    ),
    "flag": Row(
        read="constraint equality frictionloss limit contact spring damper passive gravity "
        "clampctrl actuation",
        solver="autoreset diagexact eulerdamp filterparent invdiscrete ipc island midphase "
        "multiccd nativeccd override refsafe sleep speculative warmstart",
        unused="energy fwdinv sensor",
    ),
    "size": _NONE,
    "default": _ALL,
    "extension": _ALL,
    "extension/plugin": _ALL,
    "instance": _ALL,
    "config": _ALL,
    "asset": _ALL,
    "mesh": Row(
        read="name class file scale refpos refquat vertex face builtin params inertia",
        unused="maxhullvert normal texcoord smoothnormal material content_type",
    ),
    "mesh/plugin": _ALL,
    "hfield": _NONE,
    "material": Row(read="name class rgba", unused="*"),
    "model": _ALL,
    "worldbody": _ALL,
    "body": Row(
        read=f"name childclass {_POSE} mocap fuse",
        named={GRAVITY: "gravcomp"},
        solver="sleep simple",
        unused="user",
    ),
    "inertial": _ALL,
    "joint": Row(
        read="name class type pos axis ref range limited stiffness springref springdamper damping "
        "armature frictionloss actuatorfrcrange actuatorfrclimited",
        named={
            YIELDING: "springyield",
            SPRINGS: "stiffness",
            DAMPING: "damping",
            BALLS: "range",
            GRAVITY: "actuatorgravcomp",
        },
        solver=_SOFT_LIMIT,
        unused="group user",
    ),
    "freejoint": Row(read="name align", unused="group"),
    "geom": Row(
        read=f"name class type {_POSE} fromto size mass density shellinertia mesh fitscale rgba "
        "material group",
        named={CONTACTS: f"{_CONTACT} adhesion surfacevel hfield", FLUID: "fluidshape fluidcoef"},
        unused="castshadow user",
    ),
    "geom/plugin": _ALL,
    "site": Row(
        read=f"name class {_POSE} fromto", unused="type size mesh group material rgba user"
    ),
    "camera": _NONE,
    "light": _NONE,
    "body/plugin": Row(named={PLUGINS: "plugin instance"}),
    **dict.fromkeys(("attach", "frame", "replicate"), _ALL),
    "composite": _ALL,
    **{f"composite/{name}": _ALL for name in ("joint", "tendon", "geom", "site", "pin", "plugin")},
    "flexcomp": _FLEX,
    "deformable": _ALL,
    "flex": _FLEX,
    **{f"{a}/{b}": _FLEX for a in ("flexcomp", "flex") for b in ("edge", "elasticity", "contact")},
    **{f"flexcomp/{name}": _FLEX for name in ("pin", "plugin")},
    "contact": _ALL,
    "pair": Row(
        named={PAIRS: f"geom1 geom2 condim friction {_SOFT} solreffriction margin gap adhesion"},
        unused="name class",
    ),
    "exclude": Row(named={CONTACTS: "body1 body2"}, unused="name"),
    "tendon": _TENDON_ROW,
    "spatial": _TENDON_ROW,
    "fixed": _TENDON_ROW,
    **{f"spatial/{name}": _ALL for name in ("site", "geom", "pulley")},
    "fixed/joint": _ALL,
    "equality": _EQUALITY_ROW,
    **{
        f"equality/{name}": _EQUALITY_ROW
        for name in ("connect", "weld", "joint", "tendon", "flex", "flexvert", "flexstrain")
    },
    "actuator": _ALL,
    **dict.fromkeys(
        ("general", "motor", "position", "velocity", "intvelocity", "orientation", "pid", "damper")
        + ("cylinder", "muscle", "adhesion", "dcmotor", "actuator/plugin"),
        _ACTUATOR_ROW,
    ),
    "sensor": _NONE,
    "sensor/plugin": _NONE,
}


def row_of(tag: str, parent: str) -> Row | None:
    """What becomes of an element's attributes; None if it is not in the table."""
    return TABLE.get(f"{parent}/{tag}", TABLE.get(tag))


def unknown(tag: str, parent: str, attributes: Mapping[str, str]) -> list[str]:
    """The attributes of an element that the table does not have; the element, if it has not."""
    row = row_of(tag, parent)
    if row is None:
        return [f"<{tag}>"]
    known = row.all
    return [] if "*" in known else [f"{n} of <{tag}>" for n in attributes if n not in known]
