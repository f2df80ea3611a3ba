//! The routes of the page.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::stream::{Stream, unfold};
use miserly_api::client::DaemonSocket;
use miserly_view::{Moment, TileRequest};
use serde::Deserialize;
use tokio::time::{Instant, sleep_until};

use crate::actions::{self, Action, Question};
use crate::answer::Refusal;
use crate::guard::{Guard, check_host, check_key};
use crate::live::{self, Live};
use crate::{assets, page};

/// The shortest time between two events of a stream.
const EVENTS_EVERY: Duration = Duration::from_millis(100);

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
        .route("/api/tile", get(tile))
        .route("/api/quote", post(quote))
        .route("/metrics", get(metrics))
        .route("/api/jobs/{job}", post(change))
        .route("/api/jobs/{job}/effect", post(effect))
        .route("/api/jobs/{job}/log", get(log))
        .layer(from_fn_with_state(Arc::clone(&guard), check_key));
    Router::new()
        .route("/", get(index))
        .route("/page.js", get(assets::script))
        .route("/chart.js", get(assets::chart))
        .route("/map.js", get(assets::map))
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
    headers: axum::http::HeaderMap,
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

async fn state(State(site): State<Site>) -> Response {
    Json(&site.live.latest().await.state).into_response()
}

/// A stream of states: the present one, and a new one after each change. Changes in a row are merged.
async fn events(State(site): State<Site>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let live = Arc::clone(&site.live);
    let mut posted = live.subscribe();
    posted.mark_changed();
    let stream = unfold((live, posted, Instant::now()), |(live, mut posted, soonest)| async move {
        posted.changed().await.ok()?;
        sleep_until(soonest).await;
        // A change meanwhile is in this event too.
        posted.mark_unchanged();
        let latest = live.latest().await;
        let id = latest.state.version.to_string();
        let event = Event::default().event("state").id(id).json_data(&latest.state).unwrap_or_default();
        Some((Ok(event), (live, posted, Instant::now() + EVENTS_EVERY)))
    });
    Sse::new(stream).keep_alive(KeepAlive::new().interval(Duration::from_secs(15)))
}

#[derive(Deserialize)]
struct At {
    at: i64,
}

/// The state at an earlier instant.
async fn moment(State(site): State<Site>, Query(At { at }): Query<At>) -> Result<Json<Moment>, Refusal> {
    let shown = site.live.latest().await;
    let made = move || live::moment(&shown.facts.at(at.min(shown.facts.now)));
    blocking(made).await.map(Json)
}

async fn tile(State(site): State<Site>, Query(request): Query<TileRequest>) -> Result<Response, Refusal> {
    let shown = site.live.latest().await;
    let made = move || shown.bars.tile(&request).map(|tile| serde_json::to_vec(&tile).unwrap_or_default());
    let wrong = || Refusal::new(StatusCode::BAD_REQUEST, "there is no such part of the chart");
    let body = blocking(made).await?.ok_or_else(wrong)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
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
