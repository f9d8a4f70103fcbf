// What reaches a visitor who looks elsewhere: a sound and a notification of the system,
// each only after the visitor has asked for it.

import { say } from "../../language.js";
import { storage } from "../../shell.js";

const [SOUND, NOTIFICATIONS] = ["alert-sound", "alert-notifications"];
const [NOTE_HZ, NOTE_S, LOUDNESS] = [880, 0.35, 0.2];

let audio = null;

export const isSoundOn = () => storage.read(SOUND) === "yes";

// A browser lets a page sound only after a press on it; this is called by one.
export function wakeSound() {
  if (!isSoundOn() || !("AudioContext" in window)) return;
  audio ??= new AudioContext();
  audio.resume().catch(() => {});
}

export function setSound(isOn) {
  storage.write(SOUND, isOn ? "yes" : null);
  if (!isOn) return;
  wakeSound();
  sound();
}

function sound() {
  if (audio === null) return;
  const [tone, volume] = [audio.createOscillator(), audio.createGain()];
  const beganS = audio.currentTime;
  tone.frequency.value = NOTE_HZ;
  volume.gain.setValueAtTime(LOUDNESS, beganS);
  volume.gain.exponentialRampToValueAtTime(0.001, beganS + NOTE_S);
  tone.connect(volume).connect(audio.destination);
  tone.start(beganS);
  tone.stop(beganS + NOTE_S);
}

const mayNotify = () => "Notification" in window && Notification.permission === "granted";

export const areNotificationsOn = () => storage.read(NOTIFICATIONS) === "yes" && mayNotify();

// Ask the browser, by a press of the visitor; returns what is to be said, "" if all is well.
export async function setNotifications(isOn) {
  storage.write(NOTIFICATIONS, null);
  if (!isOn) return "";
  if (!("Notification" in window)) return say("This browser has no notifications here: they need https.");
  if ((await Notification.requestPermission()) !== "granted") {
    return say("The browser does not allow notifications: its settings for this page do.");
  }
  storage.write(NOTIFICATIONS, "yes");
  return "";
}

// `texts` is [{id, isin, text}]; `onPress(isin)` is called when a notification is pressed.
export function signal(texts, onPress) {
  if (isSoundOn()) sound();
  if (!areNotificationsOn()) return;
  for (const { id, isin, text } of texts) {
    try {
      // Of one tag there is one notification: the newest of an alert.
      const notification = new Notification("tickthrottle", { body: text, tag: `tickthrottle ${id}` });
      notification.onclick = () => {
        window.focus();
        onPress(isin);
        notification.close();
      };
    } catch {
      // Some phones have them for installed pages only; the notice in the page is there.
    }
  }
}
