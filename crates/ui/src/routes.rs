//! The routes of the page.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::stream::{once, unfold};
use futures_util::{Stream, StreamExt};
use miserly_api::client::DaemonSocket;
use miserly_scene::{Picture, PictureRequest, card};
use miserly_view::dependencies;
use serde::{Deserialize, Serialize};
use tokio::time::{sleep, sleep_until};

use crate::actions::{self, Action, Offers, Question};
use crate::answer::Refusal;
use crate::guard::{Guard, check_host, check_key};
use crate::lists::{Listing, ListsQuestion, key_of};
use crate::live::{Have, Live, PageMoment};
use crate::packed::{BEFORE_MOST, Packed, response, stream_head, takes_gzip};
use crate::wanted::{Wanted, Watcher, Watchers};
use crate::{assets, page};

/// The time after which a stream without events has a comment, as a sign of life.
const SILENCE_MOST: Duration = Duration::from_secs(15);

/// The state that all requests share.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) guard: Arc<Guard>,
    pub(crate) live: Arc<Live>,
    /// The pages that follow the events.
    pub(crate) watchers: Watchers,
    /// The answers on what starts now.
    pub(crate) offers: Arc<Offers>,
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
        .route("/api/events", post(events))
        .route("/api/wants/{watcher}", post(wants))
        .route("/api/moment", get(moment))
        .route("/api/lists", post(lists))
        .route("/api/card/{job}", get(card_of))
        .route("/api/picture", get(saved))
        .route("/api/quote", post(quote))
        .route("/api/offers", get(offers))
        .route("/metrics", get(metrics))
        .route("/api/jobs/{job}", get(detail).post(change))
        .route("/api/jobs/{job}/dependencies", get(dependencies_of))
        .route("/api/jobs/{job}/effect", post(effect))
        .route("/api/jobs/{job}/log", get(log))
        .route("/api/arrays/{array}", post(change_array))
        .route("/api/arrays/{array}/effect", post(effect_on_array))
        .layer(from_fn_with_state(Arc::clone(&guard), check_key));
    Router::new()
        .route("/", get(index))
        .route("/{script}", get(assets::script))
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
    let html = |body: String| Packed::new(body).answer_as("text/html; charset=utf-8", &headers);
    let Some(token) = visit.token else {
        let proxied = site.guard.is_proxied(&headers);
        let shown = if proxied { Some(site.live.latest().await) } else { None };
        return html(page::page(shown.as_deref(), None));
    };
    if method == Method::HEAD {
        return (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET")]).into_response();
    }
    match site.guard.keys.exchange(&token) {
        Ok(Some(key)) => {
            (site.used)();
            let shown = site.live.latest().await;
            html(page::page(Some(&shown), Some(&key)))
        }
        Ok(None) => (StatusCode::UNAUTHORIZED, html(page::used_link())).into_response(),
        Err(error) => Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, format!("no random bytes: {error}"))
            .into_response(),
    }
}

async fn state(State(site): State<Site>, headers: HeaderMap) -> Response {
    Packed::new(site.live.latest().await.json()).answer(&headers)
}

#[derive(Deserialize)]
struct WatcherNumber {
    watcher: u64,
    /// The version of the state that the page has, without parts.
    have: Option<u64>,
}

/// A stream of events: the present state with the parts that the page wants, and the difference to them after each change. Changes in a
/// row are merged.
async fn events(
    State(site): State<Site>,
    Query(WatcherNumber { watcher, have }): Query<WatcherNumber>,
    headers: HeaderMap,
    Json(wanted): Json<Wanted>,
) -> Result<Response, Refusal> {
    let compressed = takes_gzip(&headers);
    let watcher = site.watchers.add(watcher, wanted.checked()?)?;
    let have = have.map(|version| Have { version, wanted: "".into() });
    let head = if compressed { stream_head() } else { Bytes::new() };
    let stream = once(async { head }).chain(contents(site.live, watcher, have, compressed));
    Ok(response(Body::from_stream(stream.map(Ok::<_, Infallible>)), "text/event-stream", compressed))
}

/// Returns the events of a page that has a content. The stream ends at an event that cannot be made: the page does not have what it would
/// bring, so it connects again, and begins with all of the content.
pub(crate) fn contents(
    live: Arc<Live>,
    watcher: Watcher,
    have: Option<Have>,
    compressed: bool,
) -> impl Stream<Item = Bytes> {
    let (posted, comment) = (live.subscribe(), Arc::new(Packed::new(":\n\n".to_owned())));
    let begin = (live, posted, watcher, have, Vec::<Arc<Packed>>::new());
    unfold(begin, move |(live, mut posted, mut watcher, have, mut before)| {
        let comment = Arc::clone(&comment);
        async move {
            loop {
                let shown = live.after(have.as_ref().map(|have| have.version)).await;
                let wanted = Arc::clone(&watcher.wanted.borrow_and_update());
                let next = Have { version: shown.version, wanted: Arc::clone(&wanted.key) };
                let event = if have.as_ref() == Some(&next) {
                    let silence = sleep(SILENCE_MOST);
                    let chart = async {
                        match shown.chart_due() {
                            Some(due) => sleep_until(due).await,
                            None => pending().await,
                        }
                    };
                    tokio::select! {
                        changed = posted.changed() => { changed.ok()?; continue }
                        changed = watcher.wanted.changed() => { changed.ok()?; continue }
                        () = chart => continue,
                        () = silence => Arc::clone(&comment),
                    }
                } else {
                    shown.event(have.as_ref(), &wanted).await?
                };
                let part = event.part(&before, compressed).await?;
                before.push(event);
                before.drain(..before.len().saturating_sub(BEFORE_MOST));
                return Some((part, (live, posted, watcher, Some(next), before)));
            }
        }
    })
}

/// Replaces the parts that a page wants. They come with the next event.
async fn wants(
    State(site): State<Site>,
    Path(watcher): Path<u64>,
    Json(wanted): Json<Wanted>,
) -> Result<StatusCode, Refusal> {
    site.watchers.replace(watcher, wanted.checked()?)?;
    Ok(StatusCode::NO_CONTENT)
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
    let made = |listing: &Listing| PageMoment::new(&listing.facts);
    Ok(packed(&compute_past(site, at, made).await?).answer(&headers))
}

/// A part of the lists at an earlier instant.
async fn lists(
    State(site): State<Site>,
    Query(At { at }): Query<At>,
    headers: HeaderMap,
    Json(question): Json<ListsQuestion>,
) -> Result<Response, Refusal> {
    key_of(&question)?;
    Ok(compute_past(site, at, move |listing| listing.answer(&question)).await?.answer(&headers))
}

/// Computes something of the lists at an earlier instant. Others wait for their turn without a thread.
async fn compute_past<T: Send + 'static>(
    site: Site,
    at: i64,
    made: impl FnOnce(&Listing) -> T + Send + 'static,
) -> Result<T, Refusal> {
    let turn = site.live.past_turn().await;
    let shown = site.live.latest().await;
    blocking(move || {
        let made = made(&site.live.past(&shown, at));
        drop(turn);
        made
    })
    .await
}

/// The facts about a job, for the card beside its bar.
async fn card_of(
    State(site): State<Site>,
    Path(job): Path<i64>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let shown = site.live.latest().await;
    let none = || Refusal::new(StatusCode::NOT_FOUND, "there is no such job");
    let job = shown.listing.job(job).ok_or_else(none)?;
    Ok(packed(&card(&shown.listing.facts.schedule(), job)).answer(&headers))
}

/// The chart as a file.
async fn saved(
    State(site): State<Site>,
    Query(request): Query<PictureRequest>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let shown = site.live.latest().await;
    let made = move || {
        let facts = &shown.chart.facts;
        let picture = Picture::of_page(&shown.chart.bars, &facts.clock, &request)?;
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

/// The unfinished jobs before and behind a job.
async fn dependencies_of(
    State(site): State<Site>,
    Path(job): Path<i64>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let shown = site.live.latest().await;
    Ok(packed(&blocking(move || dependencies(&shown.listing.facts, job)).await?).answer(&headers))
}

/// The details of a job that the daemon has.
async fn detail(
    State(site): State<Site>,
    Path(job): Path<i64>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    Ok(packed(&actions::detail(site.daemon()?, job).await?).answer(&headers))
}

#[derive(Deserialize)]
struct LogPart {
    from: Option<u64>,
}

/// The end of the output of a job, or what follows a byte of it.
async fn log(
    State(site): State<Site>,
    Path(job): Path<i64>,
    Query(LogPart { from }): Query<LogPart>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    Ok(packed(&actions::log(site.daemon()?, job, from).await?).answer(&headers))
}

/// The jobs that would start now by the word of the daemon.
async fn offers(State(site): State<Site>, headers: HeaderMap) -> Result<Response, Refusal> {
    let shown = site.live.latest().await;
    let offers = site.offers.of(site.daemon()?, &shown.moment).await?;
    Ok(packed(&offers).answer(&headers))
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
