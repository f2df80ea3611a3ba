//! Draws the view.

mod areas;

mod pen;

mod head;

mod pools;

mod axis;

mod cells;

mod chart;

mod table;

mod map;

mod foot;

mod pages;

mod holes;

use ratatui::buffer::Buffer;

pub(crate) use self::areas::Areas;
pub(crate) use self::chart::job_at;
pub(crate) use self::map::{line_of_selected as map_line_of_selected, lines as map_lines};
pub(crate) use self::pages::{help_end, output_room};
use self::pen::Pen;
pub(crate) use self::table::tab_at;
use crate::App;
use crate::app::Mode;

/// Draws the view into a buffer.
pub(crate) fn draw(app: &App, buffer: &mut Buffer) {
    let areas = Areas::new(app, app.size);
    let mut pen = Pen { buffer, look: app.look };
    head::draw(&mut pen, areas.head, app);
    match &app.mode {
        Mode::Help(top) => pages::help(&mut pen, areas.body, app, *top),
        Mode::Missed(top) => pages::missed(&mut pen, areas.body, app, *top),
        Mode::Holes => holes::draw(&mut pen, areas.body, app),
        Mode::Detail(detail, below) => pages::detail(&mut pen, areas.body, app, detail, *below),
        _ => {
            pools::draw(&mut pen, areas.pools, app);
            map::draw(&mut pen, areas.map, app);
            chart::draw(&mut pen, areas.chart, app);
            if !app.processors {
                table::draw(&mut pen, areas.table, app);
            }
            foot::sentence(&mut pen, areas.sentence, app);
        }
    }
    foot::keys(&mut pen, areas.foot, app);
}
