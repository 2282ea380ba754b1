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

/** @type {Notification | undefined} */
let shown;

/** @param {string} lectureTitle */
export function callOut(lectureTitle) {
  const t = texts[state.lang];
  ring();
  navigator.vibrate?.([300, 150, 300, 150, 600]);
  if (notificationState() === 'granted') {
    try {
      shown = new Notification(t.yourTurn, { body: `${lectureTitle}\n${t.heldForYou}`, tag: 'seatline-turn', requireInteraction: true });
      shown.onclick = () => window.focus();
    } catch {
      // Some phones allow notifications to service workers alone.
    }
  }
}

export function callOff() {
  shown?.close();
  shown = undefined;
}

/** @type {number} */
let saidAt = -Infinity;
let said = '';

/**
 * Says something to screen readers. A place changes every second, so unless it
 * matters it is said at most every twenty.
 *
 * @param {string} text
 * @param {boolean} [matters]
 */
export function announce(text, matters = false) {
  const now = performance.now();
  if (text === said || (!matters && now - saidAt < 20_000)) return;
  saidAt = now;
  said = text;
  const region = document.getElementById('announcer');
  if (region) region.textContent = text;
}
