// How somebody is told that it is their turn, wherever they look: sound, vibration,
// a notification, the title, and words for screen readers.

import { state } from './state.js';
import { texts } from './texts.js';

/** @type {AudioContext | undefined} */
let audio;

/** Browsers let a page be heard only after a gesture: joining the line is one. */
export function unlockSound() {
  try {
    audio ??= new AudioContext();
    if (audio.state === 'suspended') audio.resume().catch(() => {});
  } catch {
    // A device without sound has three other ways to be told.
  }
}

const CHIME = [587.33, 739.99, 880, 1174.66]; // D5 F♯5 A5 D6

export function ring() {
  if (!state.sound || !audio || audio.state !== 'running') return;
  const start = audio.currentTime + 0.05;
  for (const [i, frequency] of CHIME.entries()) {
    const tone = audio.createOscillator();
    const volume = audio.createGain();
    const at = start + i * 0.16;
    tone.type = 'sine';
    tone.frequency.value = frequency;
    volume.gain.setValueAtTime(0, at);
    volume.gain.linearRampToValueAtTime(0.25, at + 0.02);
    volume.gain.exponentialRampToValueAtTime(0.001, at + 0.9);
    tone.connect(volume).connect(audio.destination);
    tone.start(at);
    tone.stop(at + 1);
  }
}

/** 'default' means that one can ask. */
export const notificationState = () => ('Notification' in window ? Notification.permission : 'denied');

/** By lecture. @type {Map<string, Notification>} */
const shown = new Map();

/** @param {string} lectureId @param {string} lectureTitle */
export function callOut(lectureId, lectureTitle) {
  const t = texts[state.lang];
  ring();
  // Before the first touch browsers refuse, and complain.
  if (navigator.userActivation?.hasBeenActive !== false) navigator.vibrate?.([300, 150, 300, 150, 600]);
  if (notificationState() === 'granted') {
    try {
      const notification = new Notification(t.yourTurn, {
        body: `${lectureTitle}\n${t.heldForYou}`, tag: `seatline-turn-${lectureId}`, requireInteraction: true,
      });
      notification.onclick = () => {
        window.focus();
        location.hash = `#/lectures/${encodeURIComponent(lectureId)}`;
      };
      shown.set(lectureId, notification);
    } catch {
      // Some phones allow notifications to service workers alone.
    }
  }
}

/** @param {string} [lectureId] All of them when absent. */
export function callOff(lectureId) {
  for (const [id, notification] of shown) {
    if (lectureId !== undefined && id !== lectureId) continue;
    notification.close();
    shown.delete(id);
  }
}

let saidAt = -Infinity;
let said = '';

/** @type {ReturnType<typeof setTimeout> | undefined} */
let saying;

/**
 * Says something to screen readers. A place changes every second, so unless it
 * matters it is said at most every twenty, and what is said then is the latest.
 *
 * @param {string} text
 * @param {boolean} [matters]
 */
export function announce(text, matters = false) {
  clearTimeout(saying);
  if (text === said) return;
  const pause = matters ? 0 : saidAt + 20_000 - performance.now();
  if (pause > 0) saying = setTimeout(say, pause, text);
  else say(text);
}

/** Takes back what would have been said after the pause, as it is no longer true. */
export const hush = () => clearTimeout(saying);

/** @param {string} text */
function say(text) {
  saidAt = performance.now();
  said = text;
  const region = document.getElementById('announcer');
  if (region) region.textContent = text;
}
