//! The routes of the page.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::StreamExt;
use futures_util::stream::{once, unfold};
use miserly_api::client::DaemonSocket;
use miserly_scene::{CurvePart, Picture, PictureRequest, TileRequest, card};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::actions::{self, Action, Question};
use crate::answer::Refusal;
use crate::guard::{Guard, check_host, check_key};
use crate::lists::{Listing, ListsQuestion};
use crate::live::{Live, PageMoment};
use crate::packed::{Packed, response, stream_head, takes_gzip};
use crate::{assets, page};

/// The time after which a stream without events has a comment, as a sign of life.
const SILENCE_MOST: Duration = Duration::from_secs(15);

/// The state that all requests share.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) guard: Arc<Guard>,
    pub(crate) live: Arc<Live>,
    /// The daemon, if there is one.
    pub(crate) daemon: Option<DaemonSocket>,
    /// Whether jobs can be changed.
    pub(crate) actions: bool,
    /// Called when a link was used, with the next one.
    pub(crate) used: Arc<dyn Fn() + Send + Sync>,
}

impl Site {
    fn daemon(&self) -> Result<DaemonSocket, Refusal> {
        let none = || Refusal::new(StatusCode::NOT_FOUND, "there is no daemon behind this page");
        self.daemon.clone().ok_or_else(none)
    }

    /// Returns the daemon, if its jobs can be changed from the page.
    fn changing_daemon(&self) -> Result<DaemonSocket, Refusal> {
        if !self.actions {
            return Err(Refusal::new(StatusCode::FORBIDDEN, "this page is read-only"));
        }
        self.daemon()
    }
}

/// Returns the router of the page.
pub(crate) fn router(site: Site) -> Router {
    let guard = Arc::clone(&site.guard);
    let with_key = Router::new()
        .route("/api/state", get(state))
        .route("/api/events", get(events))
        .route("/api/moment", get(moment))
        .route("/api/lists", get(lists))
        .route("/api/tile", get(tile))
        .route("/api/curves", get(curves))
        .route("/api/card/{job}", get(card_of))
        .route("/api/picture", get(saved))
        .route("/api/quote", post(quote))
        .route("/metrics", get(metrics))
        .route("/api/jobs/{job}", post(change))
        .route("/api/jobs/{job}/effect", post(effect))
        .route("/api/jobs/{job}/log", get(log))
        .route("/api/arrays/{array}", post(change_array))
        .route("/api/arrays/{array}/effect", post(effect_on_array))
        .layer(from_fn_with_state(Arc::clone(&guard), check_key));
    Router::new()
        .route("/", get(index))
        .route("/page.js", get(assets::script))
        .route("/address.js", get(assets::address))
        .route("/chart.js", get(assets::chart))
        .route("/list.js", get(assets::list))
        .route("/map.js", get(assets::map))
        .route("/paint.js", get(assets::paint))
        .route("/print.js", get(assets::print))
        .route("/state.js", get(assets::state))
        .route("/tables.js", get(assets::tables))
        .merge(with_key)
        .fallback(nothing)
        .layer(from_fn(no_body_that_is_not_json))
        .layer(from_fn_with_state(guard, check_host))
        .with_state(site)
}

async fn nothing() -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "there is nothing at this address")
}

/// Refuses requests with another content type, which a form of another site could send.
async fn no_body_that_is_not_json(request: axum::extract::Request, next: axum::middleware::Next) -> Response {
    let json = request.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if request.method() != Method::POST || json {
        return next.run(request).await;
    }
    Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body has to be JSON").into_response()
}

#[derive(Deserialize)]
struct Visit {
    token: Option<String>,
}

/// The page: with its content for the right token, else empty. A request for the head alone does not use up a token.
async fn index(
    State(site): State<Site>,
    method: Method,
    Query(visit): Query<Visit>,
    headers: HeaderMap,
) -> Response {
    let html = |body: String| ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], body);
    let Some(token) = visit.token else {
        let proxied = site.guard.is_proxied(&headers);
        let shown = if proxied { Some(site.live.latest().await) } else { None };
        return html(page::page(shown.as_deref(), None)).into_response();
    };
    if method == Method::HEAD {
        return (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET")]).into_response();
    }
    match site.guard.keys.exchange(&token) {
        Ok(Some(key)) => {
            (site.used)();
            let shown = site.live.latest().await;
            html(page::page(Some(&shown), Some(&key))).into_response()
        }
        Ok(None) => (StatusCode::UNAUTHORIZED, html(page::used_link())).into_response(),
        Err(error) => Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, format!("no random bytes: {error}"))
            .into_response(),
    }
}

async fn state(State(site): State<Site>, headers: HeaderMap) -> Response {
    Packed::new(site.live.latest().await.json()).answer(&headers)
}

/// A stream of states: the present one, and the difference to it after each change. Changes in a row are merged.
async fn events(State(site): State<Site>, headers: HeaderMap) -> Response {
    let compressed = takes_gzip(&headers);
    let live = Arc::clone(&site.live);
    let posted = live.subscribe();
    let parts = unfold((live, posted, None), move |(live, mut posted, have)| async move {
        loop {
            let shown = live.after(have).await;
            if have != Some(shown.version) {
                let part = shown.event_after(have).part(compressed);
                return Some((part, (live, posted, Some(shown.version))));
            }
            let Ok(changed) = timeout(SILENCE_MOST, posted.changed()).await else {
                let comment = Packed::new(":\n\n".to_owned()).part(compressed);
                return Some((comment, (live, posted, have)));
            };
            changed.ok()?;
        }
    });
    let head = if compressed { stream_head() } else { Bytes::new() };
    let stream = once(async { head }).chain(parts).map(Ok::<_, Infallible>);
    response(Body::from_stream(stream), "text/event-stream", compressed)
}

#[derive(Deserialize)]
struct At {
    at: i64,
}

/// The state at an earlier instant.
async fn moment(
    State(site): State<Site>,
    Query(At { at }): Query<At>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let shown = site.live.latest().await;
    let made = move || PageMoment::new(&site.live.past(&shown, at).facts);
    Ok(packed(&blocking(made).await?).answer(&headers))
}

/// A part of the lists, at the present or at an earlier instant.
async fn lists(
    State(site): State<Site>,
    Query(question): Query<ListsQuestion>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let shown = site.live.latest().await;
    let made = move || {
        let listing: Arc<Listing> =
            question.at.map_or_else(|| Arc::clone(&shown.listing), |at| site.live.past(&shown, at));
        listing.answer(&question)
    };
    Ok(blocking(made).await?.answer(&headers))
}

async fn tile(
    State(site): State<Site>,
    Query(request): Query<TileRequest>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let shown = site.live.latest().await;
    let made = move || shown.bars.tile(&request).map(|tile| packed(&tile));
    let wrong = || Refusal::new(StatusCode::BAD_REQUEST, "there is no such part of the chart");
    Ok(blocking(made).await?.ok_or_else(wrong)?.answer(&headers))
}

/// A part of the curves.
#[derive(Deserialize)]
struct CurvesRequest {
    from: i64,
    column: i64,
    columns: usize,
}

/// The most columns of a part of the curves.
const COLUMNS_MOST: usize = 1024;

async fn curves(
    State(site): State<Site>,
    Query(CurvesRequest { from, column, columns }): Query<CurvesRequest>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    if column < 1 || !(1..=COLUMNS_MOST).contains(&columns) {
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "there is no such part of the curves"));
    }
    let shown = site.live.latest().await;
    let made = move || {
        let parts: Vec<CurvePart> =
            shown.bars.curves.iter().map(|curves| curves.part(from, column, columns)).collect();
        packed(&parts)
    };
    Ok(blocking(made).await?.answer(&headers))
}

/// The facts about a job, for the card beside its bar.
async fn card_of(
    State(site): State<Site>,
    Path(job): Path<i64>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let shown = site.live.latest().await;
    let found = card(&shown.listing.facts.schedule(), &shown.bars, job);
    let none = || Refusal::new(StatusCode::NOT_FOUND, "there is no such job");
    Ok(packed(&found.ok_or_else(none)?).answer(&headers))
}

/// The chart as a file.
async fn saved(
    State(site): State<Site>,
    Query(request): Query<PictureRequest>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let shown = site.live.latest().await;
    let made = move || {
        let facts = &shown.listing.facts;
        let picture = Picture::of_page(&shown.bars, &facts.clock, &request)?;
        Some(picture.file(&facts.title, request.dark))
    };
    let wrong = || Refusal::new(StatusCode::BAD_REQUEST, "there is no picture of this part or of this size");
    Ok(Packed::new(blocking(made).await?.ok_or_else(wrong)?).answer_as("image/svg+xml", &headers))
}

fn packed(answer: &impl Serialize) -> Packed {
    Packed::new(serde_json::to_string(answer).unwrap_or_default())
}

/// Runs a computation beside the server's threads.
async fn blocking<T: Send + 'static>(made: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
    let failed = |_| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the computation failed");
    tokio::task::spawn_blocking(made).await.map_err(failed)
}

async fn log(State(site): State<Site>, Path(job): Path<i64>) -> Result<Response, Refusal> {
    Ok(Json(actions::log(site.daemon()?, job).await?).into_response())
}

async fn metrics(State(site): State<Site>) -> Result<Response, Refusal> {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], actions::metrics(site.daemon()?).await?).into_response())
}

async fn quote(State(site): State<Site>, Json(question): Json<Question>) -> Result<Response, Refusal> {
    Ok(Json(actions::quote(site.daemon()?, question).await?).into_response())
}

async fn change(
    State(site): State<Site>,
    Path(job): Path<i64>,
    Json(action): Json<Action>,
) -> Result<StatusCode, Refusal> {
    actions::change(site.changing_daemon()?, job, action).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn effect(
    State(site): State<Site>,
    Path(job): Path<i64>,
    Json(action): Json<Action>,
) -> Result<Response, Refusal> {
    Ok(Json(actions::preview(site.changing_daemon()?, job, action).await?).into_response())
}

async fn change_array(
    State(site): State<Site>,
    Path(array): Path<i64>,
    Json(action): Json<Action>,
) -> Result<Response, Refusal> {
    Ok(Json(actions::change_array(site.changing_daemon()?, array, action).await?).into_response())
}

async fn effect_on_array(
    State(site): State<Site>,
    Path(array): Path<i64>,
    Json(action): Json<Action>,
) -> Result<Response, Refusal> {
    Ok(Json(actions::preview_array(site.changing_daemon()?, array, action).await?).into_response())
}
