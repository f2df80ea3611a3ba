//! Table 2: the size classes of each host of the Origin 2000, with their order and limits.

use miserly_classes::lsf::Size;

/// A size class in the order of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    /// The size class.
    pub(super) size: Size,
    /// The number of its jobs that may execute on the host at a time.
    pub(super) most: u32,
}

/// The size classes of a host in its order. In each, `vst` comes before `st`, `mt` and `lt`.
pub(super) type Turns = &'static [Turn];

const USUAL: Turns = &[at_most(3, Size::Large), at_most(4, Size::Medium), any(Size::Small)];

const HOSTS: [(&str, Turns); 8] = [
    ("eir", USUAL),
    ("nerthus", USUAL),
    ("jord1", USUAL),
    ("saga1", USUAL),
    ("huldra", USUAL),
    ("hod1", &[at_most(6, Size::Large), at_most(2, Size::Medium), any(Size::Small)]),
    ("mimir", &[any(Size::Small)]),
    ("modi2", &[any(Size::Medium)]),
];

/// The order of hosts not in the table: that of six of its eight hosts, without limits.
const OTHER: Turns = &[any(Size::Large), any(Size::Medium), any(Size::Small)];

/// Returns the size classes of the host of that name.
pub(super) fn turns(host: &str) -> Turns {
    HOSTS.iter().find(|(name, _)| *name == host).map_or(OTHER, |(_, turns)| turns)
}

const fn at_most(most: u32, size: Size) -> Turn {
    Turn { size, most }
}

const fn any(size: Size) -> Turn {
    at_most(u32::MAX, size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_the_paper_has_it() {
        let usual = ["eir", "nerthus", "jord1", "saga1", "huldra"].map(|host| (host, "lj<=3 mj<=4 sj"));
        let others = [("hod1", "lj<=6 mj<=2 sj"), ("mimir", "sj"), ("modi2", "mj"), ("another", "lj mj sj")];
        for (host, expected) in usual.into_iter().chain(others) {
            let shown = turns(host).iter().map(|turn| match turn.most {
                u32::MAX => turn.size.name().to_owned(),
                most => format!("{}<={most}", turn.size.name()),
            });
            assert_eq!(shown.collect::<Vec<_>>().join(" "), expected, "{host}");
        }
    }
}
