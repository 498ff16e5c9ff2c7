import sys,coterie,numpy as np,time
sys.path.insert(0,'/tmp/exp_auto'); import h
from coterie.environments import Payoffs
from coterie.environments.blocks import BLOCK
def play(w,T,clip):
    a,b=coterie.AutoCLUB(w.present(0),w.dim),coterie.HierUCB(w.present(0),w.dim); L=0.; reg=rew=0.; ws=[]
    for t in range(T):
        if t%BLOCK==0: bl=w.block(t//BLOCK)
        k=t%BLOCK; u=int(bl.users[k]); arms=np.ascontiguousarray(bl.items[bl.picks[k]]); m=bl.means[k]
        p=1/(1+np.exp(-np.clip(L,-50,50)))  # weight of hier
        if p<.001: i=a.recommend(u,arms)
        elif p>.999: i=b.recommend(u,arms)
        else: i=int(np.argmax((1-p)*a.scores(u,arms).ucb+p*b.scores(u,arms).ucb))
        r=float((bl.noise[k]<m[i]) if bl.binary else m[i]+bl.noise[k]); x=arms[i]
        sa,sb=a.scores(u,x[None]),b.scores(u,x[None])
        va=a.learner.noise2/a.learner.array("precisions")[u]+sa.width[0]**2; vb=b.learner.noise2+sb.width[0]**2
        d=.5*(np.log(va)-np.log(vb)+(r-sa.mean[0])**2/va-(r-sb.mean[0])**2/vb)
        L=.9995*L+float(np.clip(d,-clip,clip))
        a.update(u,x,r); b.update(u,x,r); reg+=m.max()-m[i]; rew+=r; ws.append(p)
    return reg,rew,np.mean(ws),ws[-1]
for name,s in (("lastfm",100),("base",100),("syn",100),("wild10",100),("none50",100)):
    if name=="lastfm": w,T=Payoffs(h.pay("lastfm"),n_arms=25,seed=s),30000
    else: f,T=h.W[name]; w=f(s)
    t=time.process_time(); r=play(w,T,3.0); print(name,s,"avg: regret %.0f reward %.0f weight of hier mean %.2f end %.2f"%r, round(time.process_time()-t),"s",flush=True)
    for n,mk in (("auto",coterie.AutoCLUB),("hier",coterie.HierUCB)):
        tr=coterie.simulate(mk(w.present(0),w.dim),w,T,record=1); print("   ",n,"regret",round(tr.regret[-1]),"reward",round(tr.reward[-1]),flush=True)
