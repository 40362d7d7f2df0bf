// A beach in the early morning, seen from a cliff: parasols, towels, deck chairs, boats and a row of posts. Every
// shadow lies to the right.
#declare Large = true;
#include "common.inc"
camera { location <-1.1, 17.3, -23.7> right x*3/2 up y look_at <0, 0, -3.0> angle 52 }
#declare SunDir = <-11, 9, 2>;
#declare Lean = <-SunDir.x/SunDir.y, 0, -SunDir.z/SunDir.y>;
SoftLight(SunDir*60, <0,0,0>, <1.0,0.90,0.74>*1.05, 6)
light_source { <10, 60, -60> rgb <0.70,0.85,1.0>*0.36 shadowless }
SkyDome(<0.60,0.72,0.85>)
#declare R = seed(5);
#macro Paint(C) texture { pigment { rgb C } finish { ambient 0.06 diffuse 0.76 specular 0.2 roughness 0.03 } } #end
#macro Chalk(C) texture { pigment { rgb C } finish { ambient 0.06 diffuse 0.8 } } #end
#declare Sand = texture { pigment { bozo turbulence 0.4 color_map { [0 rgb <0.66,0.54,0.37>] [1 rgb <0.74,0.62,0.45>] } scale 7 } finish { ambient 0.06 diffuse 0.8 } };
plane { y, 0 Tx(1, Sand) }
// Water, foam and wet sand along a wavy edge far off.
#macro Shore(Z, Y, T, Id)
  prism { linear_spline 0, Y, 84,
    #for (I, 0, 80) <-80+I*2, Z+0.9*sin(I*0.33)+0.5*sin(I*0.81+1)>, #end <80, 120>, <-80, 120>, <-80, Z+0.5*sin(1)> Tx(Id, T) }
#end
Shore(12.9, 0.01, Chalk(<0.52,0.41,0.28>), 1)
Shore(14.1, 0.03, Chalk(<0.86,0.90,0.88>), 2)
Shore(14.6, 0.05, Chalk(<0.28,0.56,0.60>), 2)
#for (I, 0, 5) Shore(16.6+I*3.4+I*I*0.5, 0.06+I*0.002, Chalk(<0.80-0.06*I,0.88-0.04*I,0.88-0.03*I>), 2) Shore(16.9+I*3.4+I*I*0.5, 0.061+I*0.002, Chalk(<0.24-I*0.03,0.52-I*0.04,0.58-I*0.03>), 2) #end

#declare Gay = array[7] { <0.80,0.14,0.12>, <0.92,0.72,0.16>, <0.12,0.36,0.64>, <0.12,0.50,0.40>, <0.90,0.44,0.12>, <0.86,0.84,0.78>, <0.55,0.22,0.46> };
#macro Parasol(X, Z, K)
  union {
    cylinder { 0, y*2.25, 0.04 Tx(3, Paint(<0.86,0.84,0.80>)) } sphere { y*2.36, 0.07 Tx(3, Paint(<0.9,0.88,0.8>)) }
    #for (J, 0, 9)
      #local A = J*36; #local B = (J+1)*36;
      triangle { <0,2.32,0>, <1.35*cos(radians(A)),1.80,1.35*sin(radians(A))>, <1.35*cos(radians(B)),1.80,1.35*sin(radians(B))> #if (mod(J,2)) Tx(3, Paint(Gay[K])) #else Tx(3, Paint(Gay[5])) #end }
    #end
    rotate y*rand(R)*36 translate <X,0,Z> }
#end
#macro Towel(X, Z, Turn, K, L)
  union { box { <-0.5,0,-1>, <0.5,0.03,1> Tx(4, Chalk(Gay[K])) }
    #for (J, 0, 4) box { <-0.502,0.001,-0.86+J*0.4>, <0.502,0.033,-0.70+J*0.4> Tx(4, Chalk(Gay[L])) } #end
    rotate y*Turn translate <X,0,Z> }
#end
#macro DeckChair(X, Z, Turn, K)
  union {
    #for (S, -1, 1, 2)
      cylinder { <S*0.32,0.04,-0.55>, <S*0.32,0.95,0.62>, 0.035 } cylinder { <S*0.36,0.04,0.60>, <S*0.36,0.62,-0.30>, 0.035 }
    #end
    cylinder { <-0.36,0.04,-0.55>, <0.36,0.04,-0.55>, 0.035 } cylinder { <-0.36,0.95,0.62>, <0.36,0.95,0.62>, 0.035 }
    cylinder { <-0.36,0.62,-0.30>, <0.36,0.62,-0.30>, 0.035 } cylinder { <-0.36,0.04,0.60>, <0.36,0.04,0.60>, 0.035 }
    Tx(5, Chalk(<0.52,0.33,0.17>))
  translate 0 rotate y*Turn translate <X,0,Z> }
  union {
    // The cloth sags between the upper bars.
    #for (J, 0, 4) #for (M, 0, 9)
      #local S0 = M/10; #local S1 = (M+1)/10; #local Y0 = 0.96-0.34*S0-0.8*S0*(1-S0); #local Y1 = 0.96-0.34*S1-0.8*S1*(1-S1);
      polygon { 5, <-0.30+J*0.12,Y0,0.61-0.9*S0>, <-0.18+J*0.12,Y0,0.61-0.9*S0>, <-0.18+J*0.12,Y1,0.61-0.9*S1>, <-0.30+J*0.12,Y1,0.61-0.9*S1>, <-0.30+J*0.12,Y0,0.61-0.9*S0> #if (mod(J,2)) Tx(5, Chalk(Gay[5])) #else Tx(5, Chalk(Gay[K])) #end }
    #end #end rotate y*Turn translate <X,0,Z> }
#end
#macro Ball(X, Z, K) sphere { <X,0.28,Z>, 0.28 Tx(6, texture { pigment { radial color_map { [0 rgb Gay[K]] [0.5 rgb Gay[K]] [0.5 rgb Gay[5]] [1 rgb Gay[5]] } frequency 3 rotate <40,K*50,20> translate <X,0.28,Z> } finish { ambient 0.06 diffuse 0.8 } }) } #end
#macro Bucket(X, Z, K) union { difference { cone { 0, 0.16, y*0.36, 0.22 } cone { y*0.04, 0.14, y*0.37, 0.20 } } torus { 0.22, 0.02 translate y*0.36 } Tx(6, Paint(Gay[K])) translate <X,0,Z> } #end
#macro Boat(X, Z, Turn, K)
  union {
    difference { sphere { 0, 1 scale <0.95,0.75,2.3> translate y*0.55 } sphere { 0, 1 scale <0.84,0.66,2.15> translate y*0.62 } plane { -y, -0.62 } plane { y, 0 } Tx(7, Paint(Gay[K])) }
    difference { sphere { 0, 1 scale <0.955,0.755,2.31> translate y*0.55 } sphere { 0, 1 scale <0.85,0.67,2.16> translate y*0.62 } plane { -y, -0.63 } plane { y, 0.52 } Tx(7, Paint(Gay[5])) }
    #for (J, -1, 1) box { <-0.72+0.1*abs(J),0.42,J*0.9-0.12>, <0.72-0.1*abs(J),0.47,J*0.9+0.12> Tx(7, Chalk(<0.60,0.42,0.24>)) } #end
    rotate y*Turn translate <X,0,Z> }
#end
// Three rows of parasols with what lies around each.
#for (Row, 0, 2) #for (I, 0, 6)
  #local X = -16.6+I*5.1+mod(Row,2)*2.2+(rand(R)-0.5)*1.0; #local Z = -4.0+Row*5.0+(rand(R)-0.5)*0.9; #local K = mod(I*3+Row*2,5); 
  Parasol(X, Z, K)
  #local S = mod(I+Row,3);
  #if (S = 0) Towel(X-1.5, Z-0.9, -8+rand(R)*16, mod(K+1,5), 5) Bucket(X-0.5, Z-1.6, mod(K+2,5)) #end
  #if (S = 1) DeckChair(X-1.4, Z-0.6, 150+rand(R)*60, K) Ball(X-0.3, Z-1.7, mod(K+3,5)) #end
  #if (S = 2) Towel(X-1.4, Z-0.5, 20+rand(R)*20, mod(K+2,5), mod(K+4,5)) #end
#end #end
Boat(-10.6, 10.6, 70, 2) Boat(-3.2, 10.9, 96, 0) Boat(4.6, 10.5, 84, 3) Boat(12.4, 10.8, 104, 4)
// The row of posts along the dune, joined by nothing; one of them is wrong.
#macro Post(Id, X, Z) union { cylinder { <X,0,Z>, <X,0.36,Z>, 0.05 } cone { <X,0.36,Z>, 0.05, <X,0.41,Z>, 0.03 } Tx(Id, Chalk(<0.46,0.33,0.22>)) } #end
#declare Wrong = 19;
#for (I, 0, 31)
  #local X = -11.4+I*0.74+0.07*sin(I*7.3)+0.04*sin(I*3.1); #local Z = -8.0+0.22*sin(I*0.5)+0.15*sin(I*5)-(I = Wrong)*0.12;
  #if (mod(I,4) = 1 & I != 17 | I = 12) // A gap.
  #elseif (I = Wrong & Anomalous)
    object { Post(8, X, Z) no_shadow }
    // Seen by the lamp alone: leaning so that its shadow falls to the other side.
    #if (!Flat) object { Post(8, X, Z) matrix <1,0,0, -2*Lean.x,1,-2*Lean.z, 0,0,1, 0,0,0> no_image } #end
    #if (IdPass = 2) object { Post(12, X, Z) matrix <1,0,0, -Lean.x,0.004,-Lean.z, 0,0,1, 0,0.01,0> } #end
  #else object { Post((I = Wrong ? 8 : 9), X, Z) } #end
#end
// A trail of footprints; stones and tufts of grass on the near dune.
#for (I, 0, 58)
  #local S = 2*mod(I,2)-1;
  sphere { 0, 1 scale <0.17,0.004,0.07> rotate y*(8*sin(I*0.3)-9*S) translate <-15+I*0.52, 0.003, -6.4+0.5*sin(I*0.16)+0.13*S> Tx(1, Chalk(<0.56,0.45,0.31>)) no_shadow }
#end
#declare Tufts = array[21][2];
#for (I, 0, 20) #declare Tufts[I][0] = -11+rand(R)*22; #declare Tufts[I][1] = -12.6+rand(R)*3.4; #end
#for (I, 0, 64)
  #local X = -11.5+rand(R)*23; #local Z = -12.6+rand(R)*3.6; #local Free = true;
  #for (J, 0, 20) #if (vlength(<X-Tufts[J][0], 0, Z-Tufts[J][1]>) < 0.5) #local Free = false; #end #end
  #if (Free)
    sphere { 0, 0.10+0.14*rand(R) scale <1.3,0.6,1> rotate y*rand(R)*180 translate <X, 0.03, Z> Tx(10, Chalk(<0.50,0.47,0.43>*(0.7+0.5*rand(R)))) }
  #end
#end
#for (I, 0, 20)
  #local X = Tufts[I][0]; #local Z = Tufts[I][1];
  #for (J, 0, 13) cone { <X+0.1*cos(J),0,Z+0.1*sin(J)>, 0.03, <X+0.1*cos(J)+0.45*(rand(R)-0.5),0.35+0.4*rand(R),Z+0.1*sin(J)+0.4*(rand(R)-0.5)>, 0.004 Tx(10, Chalk(<0.36,0.44,0.20>*(0.8+0.4*rand(R)))) } #end
#end
