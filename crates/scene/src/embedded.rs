//! The scene as data for a page without a server: all bars one by one, and the curves as steps.

use serde::{Serialize, Serializer};

use crate::tile::tile_bar;
use crate::{Bar, Bars, Clock, Curves, Group, Legend, TileBar, TileRequest};

/// The scene between two instants.
#[derive(Debug, Serialize)]
pub struct Embedded {
    groups: Vec<Group>,
    pools: Vec<String>,
    legends: Vec<Legend>,
    curves: Vec<Curves>,
    #[serde(rename = "hasPromises")]
    promises: bool,
    #[serde(rename = "hasGpus")]
    gpus: bool,
    tops: [i64; 3],
    /// The parts of the time with one offset from UTC each.
    offsets: Vec<(i64, i64)>,
    /// The bars of each group.
    bars: Vec<Vec<ColouredBar>>,
    range: [i64; 2],
}

/// A bar with its place in each legend.
#[derive(Debug)]
struct ColouredBar(TileBar, Vec<u8>);

impl Serialize for ColouredBar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (&self.0, &self.1).serialize(serializer)
    }
}

impl Embedded {
    /// Returns the scene between two instants. Short bars have their names, too: a reader may zoom in.
    pub fn new(bars: &Bars, clock: &Clock, range @ [from, to]: [i64; 2]) -> Embedded {
        let of_group = |group: usize| {
            let request = TileRequest { group, from, ..TileRequest::default() };
            let places =
                |bar: &Bar| bars.legends.iter().map(|legend| bar.classes[legend.by as usize]).collect();
            bars.within(group, from, to)
                .map(|bar| ColouredBar(tile_bar(bar, &request), places(bar)))
                .collect()
        };
        Embedded {
            groups: bars.groups.clone(),
            pools: bars.pools.clone(),
            legends: bars.legends.clone(),
            curves: bars.curves.clone(),
            promises: bars.promises,
            gpus: bars.gpus,
            tops: bars.tops,
            offsets: clock.offsets(from, to),
            bars: (0..bars.groups.len()).map(of_group).collect(),
            range,
        }
    }
}
